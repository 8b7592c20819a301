/** Times and amounts, one way of writing each. */
import { useSyncExternalStore } from 'react';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** One clock for all relative times of a page. */
let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const one of listeners) one();
  }, second);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Milliseconds since the epoch, newly each second. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => now);

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' });

/** `3 min. ago`, `in 2 hr.`. */
function relativeTime(time: number, at: number): string {
  const ms = time - at;
  const size = Math.abs(ms);
  if (size < 5 * second) return 'now';
  if (size < minute) return relative.format(Math.trunc(ms / second), 'second');
  if (size < hour) return relative.format(Math.trunc(ms / minute), 'minute');
  if (size < day) return relative.format(Math.trunc(ms / hour), 'hour');
  return relative.format(Math.trunc(ms / day), 'day');
}

/** `2026-11-22 09:00:00 UTC`. */
export const exactTime = (value: string): string => `${value.slice(0, 19).replace('T', ' ')} UTC`;

/** A relative time, with the exact one on hover; `exact` shows the exact one. */
export function Time({ value, exact = false }: { value: string | null; exact?: boolean }) {
  const at = useNow();
  if (value === null) return <span className="text-muted">–</span>;
  const full = exactTime(value);
  return (
    <time dateTime={value} title={full} className="whitespace-nowrap tabular-nums">
      {exact ? full : relativeTime(Date.parse(value), Math.max(at, 0))}
    </time>
  );
}

/** Beyond so much, durations are told in days. */
const hoursMax = day;

/** `0 ms`, `340 ms`, `2.4 s`, `3 min 20 s`, `1 h 5 min`, `3 d 4 h`. */
export function durationText(ms: number): string {
  const whole = Math.round(ms / second);
  const minutes = Math.round(ms / minute);
  if (ms < second) return `${Math.round(ms)} ms`;
  if (whole < 60) return `${(ms / second).toFixed(ms < 9.95 * second ? 1 : 0)} s`;
  if (whole < 3_600) return joined(Math.floor(whole / 60), 'min', whole % 60, 's');
  if (ms < hoursMax) return joined(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
  const hours = Math.round(ms / hour);
  return joined(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

/** Without smaller units that are zero. */
const joined = (n: number, unit: string, rest: number, smaller: string): string =>
  rest === 0 ? `${n} ${unit}` : `${n} ${unit} ${rest} ${smaller}`;

export function Duration({ ms }: { ms: number | null }) {
  if (ms === null) return <span className="text-muted">–</span>;
  return <span className="whitespace-nowrap tabular-nums">{durationText(ms)}</span>;
}

const plain = new Intl.NumberFormat('en');

/** A number with separated thousands; a dash for an unknown one. */
export const countText = (n: number | null): string => (n === null ? '–' : plain.format(n));

const kib = 1024;

/** `0 B`, `340 B`, `2.4 KiB`, `1.0 MiB`. */
export function sizeText(bytes: number): string {
  if (bytes < kib) return `${bytes} B`;
  if (bytes < kib * kib) return `${(bytes / kib).toFixed(1)} KiB`;
  return `${(bytes / (kib * kib)).toFixed(1)} MiB`;
}
