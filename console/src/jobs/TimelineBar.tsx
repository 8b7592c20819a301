import { type PointerEvent, useRef } from 'react';
import { classes } from '../ui/classes.ts';
import type { Tone } from '../ui/Status.tsx';
import { clockText, isMoment, type Span } from './spans.ts';

const colours: Record<Tone, string> = {
  good: 'bg-good',
  bad: 'bg-bad',
  warn: 'bg-warn',
  busy: 'bg-busy',
  accent: 'bg-accent',
  neutral: 'bg-muted',
};
const heights: Partial<Record<Span['kind'], string>> = { waiting: 'h-1.5', attempt: 'h-4' };

/** A span on the axis, from `left` to `right` per cent of it, and beside it why it failed. */
export function Bar({ span, left, right }: { span: Span; left: number; right: number }) {
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
  const isWait = span.kind === 'waiting';
  return (
    <>
      <span
        className={classes(
          'absolute top-1/2 min-w-[3px] -translate-y-1/2 rounded-[3px]',
          heights[span.kind] ?? 'h-2.5',
          isWait ? 'bg-line-strong' : colours[span.tone],
          span.kind === 'tool' && span.tone === 'accent' && 'opacity-60',
          span.to === null && 'animate-pulse rounded-r-none',
        )}
        style={{ left: `min(${left}%, calc(100% - 3px))`, width: `${right - left}%` }}
      />
      {span.error && <Reason message={span.error.message} left={left} right={right} />}
    </>
  );
}

/** Minimum width for a label. */
const roomMin = 25;

/** Where there is more room, after the bar or before it. */
function Reason({ message, left, right }: { message: string; left: number; right: number }) {
  const after = 100 - right;
  if (Math.max(after, left) < roomMin) return null;
  return (
    <span
      className={classes(
        'absolute top-1/2 -translate-y-1/2 truncate px-2 text-xs text-bad-text max-sm:hidden',
        after < left && 'text-right',
      )}
      style={after >= left ? { left: `${right}%`, right: 0 } : { left: 0, right: `${100 - left}%` }}
    >
      {message}
    </span>
  );
}

/** A line where the pointer is, with the time there. Drawn by hand: it moves with each pixel. */
export function useCrosshair(start: number, length: number) {
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
    label.current.textContent = clockText(start + (x / room.width) * length);
  }
  function onPointerLeave() {
    if (line.current) line.current.hidden = true;
  }
  return { axis, line, label, onPointerMove, onPointerLeave };
}
