/**
 * The bounds of one attempt's thinking, however it nests: a tool may think too, and ask for tools that
 * think. What a generation may do on its own is bounded by its turns; this bounds all of them together.
 */
import type { CallCost } from './recorded.ts';
import { ThinkingError } from './thinking-error.ts';

/** Calls of models of one attempt. */
const callsMax = 1_000;
/** Of these, the ones at a time; the others wait for a place. */
const callsAtATime = 16;

export interface RunBounds {
  /** Counts what a call cost. */
  count(cost: CallCost): void;
  /** Resolves with a place for a call, to be given back. Throws a ThinkingError beyond a bound. */
  place(signal: AbortSignal): Promise<() => void>;
}

/** `tokensMax` tokens, estimated where they are not reported. */
export function createRunBounds(tokensMax: number): RunBounds {
  const waiting = new Set<() => void>();
  let spent = 0;
  let calls = 0;
  let underWay = 0;

  function giveBack(): void {
    underWay -= 1;
    const [next] = waiting;
    next?.();
  }

  /** Resolves when there is a place, or `signal` aborts. */
  async function room(signal: AbortSignal): Promise<void> {
    while (underWay >= callsAtATime && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      waiting.delete(resolve);
    }
  }

  return {
    count({ usage, estimated }) {
      spent += (usage.prompt ?? 0) + (usage.completion ?? 0) + estimated;
    },

    async place(signal) {
      await room(signal);
      if (spent >= tokensMax) {
        throw new ThinkingError(
          'skill_execution_failed',
          `The run has used ${spent} tokens, of at most ${tokensMax}`,
        );
      }
      calls += 1;
      if (calls > callsMax) {
        throw new ThinkingError(
          'skill_execution_failed',
          `The run has called models ${callsMax} times, which is the most`,
        );
      }
      underWay += 1;
      return giveBack;
    },
  };
}
