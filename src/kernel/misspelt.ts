/**
 * Names that are probably misspelt. Of environment variables: those that differ from a setting in one or two
 * characters, in their underscores, in the order of their words or in a missing unit, while the setting itself is
 * not set. A short name such as PORT resembles many variables of other programs, so short settings are not compared.
 */

export interface Misspelt {
  readonly name: string;
  /** The setting that was probably meant. */
  readonly nearest: string;
}

/** Characters of the shortest setting that is compared. */
const comparedMin = 8;
/** In settings of this length, two characters may differ; in shorter ones, one. */
const longMin = 12;
const nearMax = 2;
/** All bits of `Lettered` but the one of the underscore. */
const lettersMask = 0x7fffffff;
/** What a name of several words may lack at its end, and characters of the shortest that may. */
const unit = /_(?:MS|MB|MAX|DAYS|CIDRS)$/;
const withoutUnitMin = 9;

/** `known` are the names of settings; `isKnown` recognizes those that have no fixed name. */
export function misspeltVariables(
  environment: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
  isKnown: (name: string) => boolean,
): Misspelt[] {
  const wanted = known
    .filter((name) => name.length >= comparedMin && !environment[name])
    .map(lettered);
  return Object.keys(environment).flatMap((name) => {
    if (known.includes(name) || isKnown(name)) return [];
    const nearest = nearestOf(name.toUpperCase(), wanted);
    return nearest === null ? [] : [{ name, nearest }];
  });
}

/** The name of `known` that was probably meant by `given`; null if none is near. */
export function nearestName(given: string, known: readonly string[]): string | null {
  return nearestOf(given, known.map(lettered));
}

/** A start compares thousands of pairs of names, of which few have nearly the same letters. */
interface Lettered {
  readonly name: string;
  /** A bit for each letter of the name; letters share bits with other characters. */
  readonly letters: number;
}

function lettered(name: string): Lettered {
  let letters = 0;
  for (let i = 0; i < name.length; i++) letters |= 1 << (name.charCodeAt(i) & 31);
  return { name, letters };
}

function nearestOf(given: string, known: readonly Lettered[]): string | null {
  const begins = (name: string) => Number(name.startsWith(given));
  const wanted = lettered(given);
  const near = known
    .map((one) => ({ name: one.name, distance: distanceOf(wanted, one) }))
    .filter(({ name, distance }) => distance <= (name.length < longMin ? 1 : nearMax))
    // Of equally near ones, what `given` begins: `$def` lacks a letter of `$defs`, and has another one than `$ref`.
    .sort((a, b) => a.distance - b.distance || begins(b.name) - begins(a.name))[0];
  return near?.name ?? null;
}

/** How much two names differ, whatever their underscores and the order of their words. */
function distanceOf(
  { name: given, letters }: Lettered,
  { name, letters: those }: Lettered,
): number {
  const mayLackUnit = given.includes('_') && given.length >= withoutUnitMin;
  const lacksUnit = mayLackUnit && name.startsWith(given) && given === name.replace(unit, '');
  if (lacksUnit) return 1;
  // Each difference is one of at most two letters.
  if (bitsOf((letters ^ those) & lettersMask) > 2 * nearMax) return Number.POSITIVE_INFINITY;
  if (hasSameWords(given, name)) return 1;
  const bare = (text: string) => text.replaceAll('_', '');
  return Math.min(editDistance(given, name), editDistance(bare(given), bare(name)));
}

function bitsOf(bits: number): number {
  let count = 0;
  for (let left = bits; left !== 0; left &= left - 1) count++;
  return count;
}

function hasSameWords(a: string, b: string): boolean {
  const sorted = (text: string) => text.split('_').sort().join();
  return a.length === b.length && sorted(a) === sorted(b);
}

/**
 * How many characters have to be added, removed, replaced or swapped with their neighbour to make `a`
 * of `b`; Infinity for lengths that differ by more than 2.
 */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > nearMax) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      next[j] = Math.min(
        at(row, j) + 1,
        at(next, j - 1) + 1,
        at(row, j - 1) + (isSame ? 0 : 1),
        isSwapped ? at(before, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    before = row;
    row = next;
  }
  return at(row, b.length);
}

function at(row: readonly number[], i: number): number {
  return row[i] ?? Number.POSITIVE_INFINITY;
}
