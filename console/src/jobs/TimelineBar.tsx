import { type PointerEvent, useRef } from 'react';
import { classes } from '../ui/classes.ts';
import type { Tone } from '../ui/Status.tsx';
import { clockText, isMoment, isOverDays } from './span-text.ts';
import type { Span } from './spans.ts';
import type { TimeScale } from './time-scale.ts';
import { isWait } from './waits.ts';

const colours: Record<Tone, string> = {
  good: 'bg-good',
  bad: 'bg-bad',
  warn: 'bg-warn',
  busy: 'bg-busy',
  accent: 'bg-accent',
  neutral: 'bg-muted',
};
const thin = 'h-1.5';
const heights: Partial<Record<Span['kind'], string>> = {
  queued: thin,
  sleep: thin,
  event: thin,
  approval: thin,
  run: thin,
  provider: thin,
  attempt: 'h-4',
};

/** A span on the axis, and beside it why it failed, or what it waits for. */
export function Bar({ span, scale, end }: { span: Span; scale: TimeScale; end: number }) {
  const left = scale.percent(span.from);
  const right = scale.percent(span.to ?? end);
  if (isMoment(span)) {
    return (
      <span
        className={classes(
          'absolute top-1/2 size-2.5 -translate-1/2 rotate-45 rounded-[2px] ring-2 ring-surface',
          colours[span.tone],
        )}
        style={{ left: `clamp(5px, ${left}%, calc(100% - 5px))` }}
      />
    );
  }
  const isOpen = span.to === null;
  const isQuiet = span.kind === 'queued' || (isWaitOf(span) && !isOpen && span.tone !== 'bad');
  const words = span.error?.message ?? (isOpen && isWaitOf(span) ? span.outcome : undefined);
  return (
    <>
      <span
        className={classes(
          'absolute top-1/2 min-w-[3px] -translate-y-1/2 rounded-[3px]',
          heights[span.kind] ?? 'h-2.5',
          isQuiet ? 'bg-line-strong' : colours[span.tone],
          span.kind === 'tool' && span.tone === 'accent' && 'opacity-60',
          isOpen && 'animate-pulse rounded-r-none',
        )}
        style={{ left: `min(${left}%, calc(100% - 3px))`, width: `${right - left}%` }}
      />
      {span.idle?.map(({ from, to }) => (
        <Pause
          key={from}
          left={scale.percent(from)}
          right={scale.percent(Math.min(to, span.to ?? end))}
        />
      ))}
      {words !== undefined && (
        <Words isBad={span.error !== null} text={words} left={left} right={right} />
      )}
    </>
  );
}

const isWaitOf = ({ step }: Span): boolean => step !== undefined && isWait(step);

/** Where the bar of an attempt is thin: its run waited, unloaded. */
function Pause({ left, right }: { left: number; right: number }) {
  const place = { left: `${left}%`, width: `${right - left}%` };
  return (
    <>
      <span className="absolute top-1/2 h-1.5 -translate-y-[8px] bg-surface" style={place} />
      <span className="absolute top-1/2 h-1.5 translate-y-[2px] bg-surface" style={place} />
    </>
  );
}

/** Minimum width for a label. */
const roomMin = 25;

/** Where there is more room, after the bar or before it. */
function Words({
  text,
  isBad,
  left,
  right,
}: {
  text: string;
  isBad: boolean;
  left: number;
  right: number;
}) {
  const after = 100 - right;
  if (Math.max(after, left) < roomMin) return null;
  return (
    <span
      className={classes(
        'absolute top-1/2 -translate-y-1/2 truncate px-2 text-xs max-sm:hidden',
        isBad ? 'text-bad-text' : 'text-accent-text',
        after < left && 'text-right',
      )}
      style={after >= left ? { left: `${right}%`, right: 0 } : { left: 0, right: `${100 - left}%` }}
    >
      {text}
    </span>
  );
}

/** A line where the pointer is, with the time there. Drawn by hand: it moves with each pixel. */
export function useCrosshair({ start, length, momentAt }: TimeScale) {
  const axis = useRef<HTMLTableCellElement>(null);
  const line = useRef<HTMLDivElement>(null);
  const label = useRef<HTMLSpanElement>(null);
  function onPointerMove(event: PointerEvent) {
    if (!axis.current || !line.current || !label.current) return;
    const room = axis.current.getBoundingClientRect();
    const x = event.clientX - room.left;
    const isHere = event.pointerType === 'mouse' && x >= 0 && x <= room.width;
    line.current.hidden = !isHere;
    if (!isHere) return;
    line.current.style.left = `${axis.current.offsetLeft + x}px`;
    const moment = momentAt((x / room.width) * 100);
    label.current.textContent = clockText(moment, isOverDays(start, start + length));
  }
  function onPointerLeave() {
    if (line.current) line.current.hidden = true;
  }
  return { axis, line, label, onPointerMove, onPointerLeave };
}
