/**
 * Merges the results of two searches (reciprocal rank fusion). Their scores are not comparable: word relevance has no
 * upper bound, and the scale of vector similarity depends on the model. Ranks are comparable. Pure.
 */

/** The k of reciprocal rank fusion: a greater value favors items that both searches found over top ranks in one. */
const damping = 60;

/** Best first; ties are in the order of the first search. */
export function fused<K>(first: readonly K[], second: readonly K[]): K[] {
  const scores = new Map<K, number>();
  for (const order of [first, second]) {
    for (const [rank, key] of order.entries()) {
      scores.set(key, (scores.get(key) ?? 0) + 1 / (damping + rank));
    }
  }
  // Sorting keeps the order of insertion among equals.
  return [...scores].sort(([, a], [, b]) => b - a).map(([key]) => key);
}
