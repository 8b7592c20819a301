/** What a job waits for, in words. No I/O. */
import type { JobStep } from '../api/jobs.ts';
import { exactTime } from '../ui/Time.tsx';

const kinds: readonly JobStep['kind'][] = ['sleep', 'event', 'approval', 'run', 'provider'];

export const isWait = ({ kind }: Pick<JobStep, 'kind'>): boolean => kinds.includes(kind);

/** Whether a person may be asked: by the run itself, or by a job that it has started. */
export const mayAsk = ({ kind }: Pick<JobStep, 'kind'>): boolean =>
  kind === 'approval' || kind === 'run';

/** The event, with its key: `order.paid (4711)`. */
export function eventText({ event, key }: NonNullable<JobStep['waits_for']>): string {
  return key == null ? `${event}` : `${event} (${key})`;
}

/** Of an open wait, without its end: `waits for order.paid (4711)`. */
export function waitText({ kind, name, waits_for }: JobStep): string {
  switch (kind) {
    case 'sleep':
      return 'sleeps';
    case 'event':
      return `waits for ${waits_for?.event === undefined ? name : eventText(waits_for)}`;
    case 'approval':
      return 'waits for a decision';
    case 'provider':
      return `waits for ${name}`;
    default:
      return name.startsWith('agent/') ? `asks ${name}` : `runs ${waits_for?.skill ?? name}`;
  }
}

/** How a wait stands or ended: `sleeps until 2026-11-25 09:00:00 UTC`, `approved`, `its time had passed`. */
export function waitOutcome(step: JobStep): string {
  const { kind, status, due_at, finished_at, waits_for } = step;
  if (status === 'waiting') {
    // A child job ends when it ends: its deadline is the longest that any wait may last.
    if (due_at === null || kind === 'run') return waitText(step);
    const word = kind === 'provider' ? ', next try at' : ' until';
    return `${waitText(step)}${word} ${exactTime(due_at)}`;
  }
  if (status !== 'completed') return status;
  if (kind === 'sleep') return 'slept';
  if (kind === 'provider') return 'waited';
  if (kind === 'approval') return waits_for?.status ?? 'decided';
  if (kind === 'run') return status;
  const isLate = due_at !== null && finished_at !== null && finished_at >= due_at;
  return isLate ? 'no event in time' : 'the event came';
}
