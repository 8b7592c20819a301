/** Turns of the event loop, granted one at a time. */

/**
 * Resolves in a turn of the event loop that no other caller gets, so that blocking work lets requests
 * through after each piece, however many pieces wait.
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
