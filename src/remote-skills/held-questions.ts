/**
 * Counts the questions for which services hold their calls. Each keeps a loaded run, a connection and perhaps a process
 * for as long as a person takes, so their number in a process is bounded.
 */

/** Questions of one source, and of all. */
const sourceMax = 50;
const processMax = 200;

export interface HeldQuestions {
  /** Returns what is to be called when the question has ended, or why there cannot be one more. */
  hold(sourceId: string): (() => void) | string;
}

export function createHeldQuestions(): HeldQuestions {
  const counts = new Map<string, number>();
  let total = 0;
  return {
    hold(sourceId) {
      const count = counts.get(sourceId) ?? 0;
      if (count >= sourceMax) return `${sourceMax} calls of it wait for a person already`;
      if (total >= processMax) return `${processMax} calls wait for a person already`;
      counts.set(sourceId, count + 1);
      total += 1;
      return () => {
        total -= 1;
        const left = (counts.get(sourceId) ?? 0) - 1;
        if (left > 0) counts.set(sourceId, left);
        else counts.delete(sourceId);
      };
    },
  };
}
