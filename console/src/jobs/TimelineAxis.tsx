import { type RefObject, useLayoutEffect, useState } from 'react';
import { durationText } from '../ui/Time.tsx';
import type { TimeScale } from './time-scale.ts';
import { tickStep } from './time-scale.ts';

const ticksMin = 4;
const ticksMax = 6;
/** Width of a tick, and of a letter of its text, in pixels. */
const tickPx = 64;
const letterPx = 7;

/** Pixels from the left of its row, and of its width. */
export function usePlace(element: RefObject<HTMLElement | null>) {
  const [place, setPlace] = useState({ left: 0, width: 0 });
  useLayoutEffect(() => {
    const observed = element.current;
    if (observed === null) return;
    const measure = () => setPlace({ left: observed.offsetLeft, width: observed.clientWidth });
    const observer = new ResizeObserver(measure);
    observer.observe(observed);
    measure();
    return () => observer.disconnect();
  }, [element]);
  return place;
}

const isFolded = ({ stretches }: TimeScale): boolean => stretches.some((one) => one.isFolded);

/** Milliseconds from tick to tick of an axis that is to scale. */
const stepOf = (length: number, room: number): number =>
  tickStep(length, Math.min(ticksMax, Math.max(ticksMin, Math.floor(room / tickPx))));

const hatched = {
  backgroundImage: 'repeating-linear-gradient(-45deg, var(--line) 0 1px, transparent 1px 5px)',
};

/** Behind all rows: lines at the ticks of an axis that is to scale; on a folded one, the folded stretches, hatched. */
export function Grid({ scale, left, width }: { scale: TimeScale; left: number; width: number }) {
  const { length, stretches } = scale;
  const lines = {
    backgroundImage: 'linear-gradient(to right, var(--line) 1px, transparent 1px)',
    backgroundSize: `${(stepOf(length, width) / length) * 100}% 100%`,
  };
  return (
    <div
      aria-hidden
      className="absolute top-8 bottom-0 overflow-hidden"
      style={{ left, width, ...(isFolded(scale) ? {} : lines) }}
    >
      {stretches.map(
        (one) =>
          one.isFolded && (
            <span
              key={one.from}
              className="absolute inset-y-0"
              style={{ left: `${one.left}%`, width: `${one.right - one.left}%`, ...hatched }}
            />
          ),
      )}
    </div>
  );
}

interface Tick {
  /** Per cent of the axis. */
  readonly left: number;
  readonly text: string;
  /** It tells how long a folded stretch is, and has no line. */
  readonly isLength?: boolean;
}

/** Times since the beginning; on a folded axis, the beginning of each stretch and the length of each fold. */
export function Ticks({ scale, room }: { scale: TimeScale; room: number }) {
  const labelled: Tick[] = [];
  // One that would meet the one before, or run into the next column, is left out.
  let free = 0;
  for (const tick of isFolded(scale) ? ticksOfStretches(scale, room) : evenTicks(scale, room)) {
    const left = (tick.left / 100) * room;
    const right = left + (tick.text.length + 1) * letterPx;
    if (left < free || right > room) continue;
    labelled.push(tick);
    free = right;
  }
  return (
    <div aria-hidden className="relative h-8 tabular-nums">
      {labelled.map(({ left, text, isLength }) => (
        <span
          key={left}
          className={
            isLength
              ? 'absolute top-1/2 -translate-y-1/2 whitespace-nowrap italic'
              : 'absolute top-1/2 -translate-y-1/2 border-l border-line-strong pl-1 whitespace-nowrap'
          }
          style={{ left: `${left}%` }}
        >
          {text}
        </span>
      ))}
    </div>
  );
}

function evenTicks({ length }: TimeScale, room: number): Tick[] {
  const step = stepOf(length, room);
  const ticks: Tick[] = [];
  for (let at = 0; at <= length; at += step) {
    ticks.push({ left: (at / length) * 100, text: at === 0 ? '0' : tickText(at) });
  }
  return ticks;
}

function ticksOfStretches({ start, stretches }: TimeScale, room: number): Tick[] {
  return stretches.flatMap(({ from, to, left, right, isFolded }): Tick[] => {
    if (!isFolded) return [{ left, text: from === start ? '0' : durationText(from - start) }];
    const text = durationText(to - from);
    // In the middle, if it has room there.
    const width = ((text.length * letterPx) / Math.max(room, 1)) * 100;
    const middle = (left + right - width) / 2;
    return middle < left ? [] : [{ left: middle, text, isLength: true }];
  });
}

/** A short duration in whole units, for ticks. */
function tickText(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 60_000) return `${ms / 1_000} s`;
  if (ms < 3_600_000) return ms % 60_000 === 0 ? `${ms / 60_000} min` : durationText(ms);
  return ms % 3_600_000 === 0 && ms < 24 * 3_600_000 ? `${ms / 3_600_000} h` : durationText(ms);
}
