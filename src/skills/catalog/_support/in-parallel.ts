/** Calls of a model that one run has under way: enough to be quick, few enough for its limits. */
export const callsAtATime = 4;

/**
 * The results of `work` in the order of the items, `callsAtATime` of them at a time. Once one has
 * failed, or the signal has aborted, no further one begins; those under way end first, so that what
 * they cost is recorded and is not paid again by the next attempt. Rejects with the first failure.
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
