/**
 * The scale of a timeline's axis. Long idle periods are folded (drawn shorter than their length), because a wait of
 * days would otherwise leave no room for two seconds of work. No I/O.
 */
import { type Interval, lengthOf, union, without } from './intervals.ts';
import type { Span } from './spans.ts';

/** Quiet stretches are folded once they are longer together than so many times all that ran. */
const quietMax = 2;
/** Room of all quiet stretches together, in shares of what ran. */
const foldedShare = 0.75;

interface Stretch extends Interval {
  /** Per cent of the axis. */
  readonly left: number;
  readonly right: number;
  readonly isFolded: boolean;
}

export interface TimeScale {
  readonly start: number;
  readonly length: number;
  /** The whole axis, from left to right: each stretch to scale, or folded. */
  readonly stretches: readonly Stretch[];
  /** Per cent of the axis at which a moment lies. */
  percent(at: number): number;
  /** The moment at a place of the axis. */
  momentAt(percent: number): number;
}

/** Of the time from the first span to `end`. */
export function timeScale(spans: readonly Span[], end: number): TimeScale {
  const start = spans[0]?.from ?? end;
  const stretches = stretchesOf({ from: start, to: Math.max(end, start + 1) }, ranIn(spans, end));
  return {
    start,
    length: Math.max(end - start, 1),
    stretches,
    percent(at) {
      const { from, to, left, right } = stretchWhere(stretches, (one) => at <= one.to);
      return left + ((at - from) / (to - from)) * (right - left);
    },
    momentAt(percent) {
      const { from, to, left, right } = stretchWhere(stretches, (one) => percent <= one.right);
      return from + ((percent - left) / (right - left)) * (to - from);
    },
  };
}

/** When the run was loaded: its attempts without the times in which they only waited. */
function ranIn(spans: readonly Span[], end: number): Interval[] {
  const loaded = spans.filter(({ kind }) => kind === 'attempt');
  return union(
    loaded.flatMap(({ from, to, idle = [] }) => without([{ from, to: to ?? end }], idle)),
  );
}

function stretchesOf(whole: Interval, ran: readonly Interval[]): Stretch[] {
  const quiet = without([whole], ran);
  const ranMs = lengthOf([whole]) - lengthOf(quiet);
  if (ranMs === 0 || lengthOf(quiet) <= quietMax * ranMs) {
    return [{ ...whole, left: 0, right: 100, isFolded: false }];
  }
  const foldedMs = longestUnfolded(quiet, foldedShare * ranMs);
  const roomOf = ({ from, to }: Interval) => Math.min(to - from, foldedMs);
  const room = ranMs + quiet.reduce((sum, one) => sum + roomOf(one), 0);
  const folded = quiet.filter(({ from, to }) => to - from > foldedMs);
  const parts = [
    ...folded.map((one) => ({ ...one, isFolded: true })),
    ...without([whole], folded).map((one) => ({ ...one, isFolded: false })),
  ].sort((a, b) => a.from - b.from);
  let used = 0;
  return parts.map((part) => {
    const left = (used / room) * 100;
    used += part.isFolded ? foldedMs : part.to - part.from;
    return { ...part, left, right: (used / room) * 100 };
  });
}

/** The length to which longer stretches are shortened, so that all together have the room. */
function longestUnfolded(quiet: readonly Interval[], room: number): number {
  const lengths = quiet.map(({ from, to }) => to - from).sort((a, b) => a - b);
  let left = room;
  for (const [i, length] of lengths.entries()) {
    const share = left / (lengths.length - i);
    if (length > share) return share;
    left -= length;
  }
  return Number.POSITIVE_INFINITY;
}

/** The first stretch for which it is so, or the last one. */
function stretchWhere(
  stretches: readonly Stretch[],
  isHere: (stretch: Stretch) => boolean,
): Stretch {
  return stretches.find(isHere) ?? (stretches.at(-1) as Stretch);
}

const tickSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500].concat(
  ...[1, 2, 5, 10, 15, 30].map((s) => s * 1_000),
  ...[1, 2, 5, 10, 15, 30].map((min) => min * 60_000),
  ...[1, 2, 3, 6, 12, 24, 48, 96, 168].map((h) => h * 3_600_000),
);

/** Milliseconds between two ticks of an axis that is so long, so that there are at most `most`. */
export function tickStep(length: number, most: number): number {
  return tickSteps.find((step) => length / step <= most) ?? length / most;
}
