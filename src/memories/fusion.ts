/**
 * One order of what two searches have found (reciprocal rank fusion). Their own measures cannot be compared: a relevance
 * of words has no upper bound, and what similarity of vectors is great depends on the model. Ranks can. Pure.
 */

/** The greater it is, the less the first ranks of one search outweigh what both have found. */
const damping = 60;

/** Best first; what the first search has found better is first among equals. */
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
