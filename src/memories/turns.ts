/** Turns of the event loop, given out one at a time. */

/**
 * A promise of a turn that nobody else is given, so that work which blocks, however much of it waits,
 * lets requests through after each piece.
 */
export function createTurns(): () => Promise<void> {
  const waiting: (() => void)[] = [];

  function next(): void {
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(next);
  }

  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 1) setImmediate(next);
    });
}
