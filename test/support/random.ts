/** Chance, for tests in which it does not matter what it decides; the same after each `seedChance`. */

let state = 1;

/** From here on chance decides as it did after the same seed before. */
export function seedChance(seed: number): void {
  state = seed;
}

/** At least 0 and below 1 (mulberry32). */
function chance(): number {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

/** From `from` to `to`, both included. */
export function randomInteger(from: number, to: number): number {
  return from + Math.floor(chance() * (to - from + 1));
}

export function oneOf<T>(things: readonly T[]): T {
  return things[randomInteger(0, things.length - 1)] as T;
}

/** The same in a random order. */
export function shuffled<T>(things: readonly T[]): T[] {
  return things
    .map((thing) => ({ thing, at: chance() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ thing }) => thing);
}
