/** Concurrent model calls of one run: enough for speed, and few enough for a model's rate limits. */
export const callsAtATime = 4;

/**
 * The results of `work` in the order of the items, with `callsAtATime` concurrent calls. After a failure
 * or an abort no further call starts. Active calls end first, so that their results are recorded and the
 * next attempt does not pay for them again. Rejects with the first failure.
 */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  signal: AbortSignal,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const failures: unknown[] = [];
  const waiting = items.entries();
  const takeTurns = async () => {
    for (const [index, item] of waiting) {
      try {
        signal.throwIfAborted();
        results[index] = await work(item, index);
      } catch (error) {
        failures.push(error);
      }
      if (failures.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: callsAtATime }, takeTurns));
  if (failures.length > 0) throw failures[0];
  return results;
}
