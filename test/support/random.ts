/** Chance, for tests in which it does not matter what it decides. */

/** From `from` to `to`, both included. */
export function randomInteger(from: number, to: number): number {
  return from + Math.floor(Math.random() * (to - from + 1));
}

export function oneOf<T>(things: readonly T[]): T {
  return things[randomInteger(0, things.length - 1)] as T;
}

/** The same in a random order. */
export function shuffled<T>(things: readonly T[]): T[] {
  return things
    .map((thing) => ({ thing, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ thing }) => thing);
}
