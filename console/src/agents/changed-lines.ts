/** How a text has changed, as two columns of lines. */
import type { DifferentLines } from '../remote/difference.ts';

/** Pairs of lines compared at most; a larger change is shown as replaced as a whole. */
const comparedMax = 1_000_000;
/** Equal lines that are shown around a change. */
const around = 3;

/** The lines of two texts side by side; equal lines far from a change are left out. */
export function changedLines(before: string, after: string): DifferentLines[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  const begin = equalAtStart(a, b);
  const end = equalAtStart(a.slice(begin).reverse(), b.slice(begin).reverse());
  const middle = compared(a.slice(begin, a.length - end), b.slice(begin, b.length - end));
  return withGaps([
    ...a.slice(0, begin).map(same),
    ...middle,
    ...a.slice(a.length - end, a.length).map(same),
  ]);
}

/** An empty text has no line. */
function linesOf(text: string): string[] {
  return text === '' ? [] : text.split('\n');
}

function same(line: string): DifferentLines {
  return { kind: 'same', before: line, after: line };
}

function equalAtStart(a: readonly string[], b: readonly string[]): number {
  const different = a.findIndex((line, i) => line !== b[i]);
  return different === -1 ? a.length : different;
}

/** The lines of the longest common subsequence stand beside each other. */
function compared(a: readonly string[], b: readonly string[]): DifferentLines[] {
  if (a.length * b.length > comparedMax) return changed(a, b);
  /** By the remaining lines of both texts: the length of their longest common subsequence. */
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  const at = (i: number, j: number) => common[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    const row = common[i] as Uint16Array;
    for (let j = b.length - 1; j >= 0; j--) {
      row[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const rows: DifferentLines[] = [];
  let [removed, added]: [string[], string[]] = [[], []];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && a[i] === b[j]) {
      rows.push(...changed(removed, added), same(a[i] as string));
      [removed, added] = [[], []];
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) {
      removed.push(a[i++] as string);
    } else added.push(b[j++] as string);
  }
  return [...rows, ...changed(removed, added)];
}

/** Puts removed lines beside the added ones that replace them. */
function changed(removed: readonly string[], added: readonly string[]): DifferentLines[] {
  return Array.from({ length: Math.max(removed.length, added.length) }, (_, i) => ({
    kind: 'changed',
    before: removed[i] ?? null,
    after: added[i] ?? null,
  }));
}

function withGaps(rows: readonly DifferentLines[]): DifferentLines[] {
  const isNear = (at: number) =>
    rows.slice(Math.max(0, at - around), at + around + 1).some(({ kind }) => kind === 'changed');
  const shown: DifferentLines[] = [];
  for (const [i, row] of rows.entries()) {
    if (isNear(i)) shown.push(row);
    else if (shown.at(-1)?.kind !== 'gap') shown.push({ kind: 'gap', before: null, after: null });
  }
  return shown;
}
