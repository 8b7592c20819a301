/** Sets of moments, as intervals in order that do not touch each other. No I/O. */

export interface Interval {
  readonly from: number;
  readonly to: number;
}

/** All moments of any of the intervals. */
export function union(intervals: readonly Interval[]): Interval[] {
  const merged: { from: number; to: number }[] = [];
  for (const { from, to } of intervals.toSorted((a, b) => a.from - b.from)) {
    if (to <= from) continue;
    const last = merged.at(-1);
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to);
    else merged.push({ from, to });
  }
  return merged;
}

/** The moments of the first set that are not in the second. */
export function without(set: readonly Interval[], taken: readonly Interval[]): Interval[] {
  return set.flatMap((interval) => {
    const left: Interval[] = [];
    let { from } = interval;
    for (const hole of taken) {
      if (hole.to <= from) continue;
      if (hole.from >= interval.to) break;
      if (hole.from > from) left.push({ from, to: hole.from });
      from = hole.to;
    }
    if (from < interval.to) left.push({ from, to: interval.to });
    return left;
  });
}

export const lengthOf = (set: readonly Interval[]): number =>
  set.reduce((sum, { from, to }) => sum + to - from, 0);
