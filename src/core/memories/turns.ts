/** Turns of the event loop, granted one at a time. */

/**
 * Each call resolves in a turn of the event loop of its own, so that requests are served between two pieces of
 * blocking work.
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
