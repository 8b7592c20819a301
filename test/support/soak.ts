/**
 * How long the tests go on that find more the longer they run: kills at random moments, chaos, random
 * commands, days of schedules. On each change they run few rounds with the same chances every time; `npm run soak` runs
 * them all, with chances of its own. CONTRIBUTING.md lists them.
 */
import { seedChance } from './random.ts';

/** For a test whose promise another one holds on each change, at a lower cost. */
export const isSoak = process.env['SOAK'] === 'true';

/** How many rounds a loop makes on each change, and how many in a soak; or of what it makes them. */
export function rounds<T>(few: T, soak: T): T {
  return isSoak ? soak : few;
}

/** As `rounds`, for fast-check. */
export function propertyRuns(few: number, soak: number): { numRuns: number; seed: number } {
  return { numRuns: rounds(few, soak), seed: chanceSeed() };
}

/** Begins the chances of a test; SOAK_SEED repeats those of a soak. */
export function beginChance(): void {
  seedChance(chanceSeed());
}

function chanceSeed(): number {
  const seed = isSoak ? Number(process.env['SOAK_SEED'] ?? Date.now() % 1_000_000) : 1;
  if (isSoak) console.log(`SOAK_SEED=${seed}`);
  return seed;
}
