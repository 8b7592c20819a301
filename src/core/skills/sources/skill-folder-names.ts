/** Which names are near to one that does not exist, for a model that has misremembered it. */

/** Share of letter pairs in common (Dice's coefficient) from which a name counts as near. */
const nearMax = 0.5;

/** The paths likest to `path`, best first; those whose last name alone is like its last name count too. */
export function likest(path: string, paths: readonly string[], max: number): string[] {
  const whole = pairsOf(path);
  const last = pairsOf(lastName(path));
  return paths
    .map((one) => ({
      one,
      score: Math.max(likeness(whole, pairsOf(one)), likeness(last, pairsOf(lastName(one)))),
    }))
    .filter(({ score }) => score >= nearMax)
    .sort((a, b) => b.score - a.score)
    .slice(0, max)
    .map(({ one }) => one);
}

function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  if (a.size === 0 || b.size === 0) return 0;
  return (2 * a.intersection(b).size) / (a.size + b.size);
}

/** Pairs of neighbouring characters, letter case aside; the ends count as characters. */
function pairsOf(name: string): Set<string> {
  const padded = ` ${name.toLowerCase()} `;
  return new Set(Array.from({ length: padded.length - 1 }, (_, i) => padded.slice(i, i + 2)));
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
