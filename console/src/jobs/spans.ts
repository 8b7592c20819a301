/** What a job did from when to when, from its status events, its row and its steps. No I/O. */

import type { JobEvent } from '../api/follow.ts';
import { hasEnded, type Job, type JobStep } from '../api/jobs.ts';
import type { Tone } from '../ui/Status.tsx';
import { durationText } from '../ui/Time.tsx';

interface Failure {
  readonly code: string;
  readonly message: string;
}

export interface Span {
  readonly key: string;
  readonly kind: 'accepted' | 'waiting' | 'attempt' | 'model' | 'tool' | 'skill' | 'settled';
  readonly label: string;
  /** Milliseconds since the epoch. */
  readonly from: number;
  /** Null while it is active; equals `from` for a moment. */
  readonly to: number | null;
  readonly tone: Tone;
  /** How it ended, in a word or two. */
  readonly outcome: string;
  readonly error: Failure | null;
  /** Until when a wait was meant to last. */
  readonly dueAt?: number;
  readonly step?: JobStep;
  /** How many steps of the attempt led to this one. */
  readonly depth?: number;
}

/** `data` of a status event, as the API documents it. */
interface StatusData {
  readonly status: Job['status'];
  readonly at: string;
  readonly attempt?: number;
  readonly error?: Failure | null;
  readonly run_at?: string;
}

/** From the events, or from the job until they arrive. */
function statusesOf(job: Job, events: readonly JobEvent[]): StatusData[] {
  const told = events.filter(({ type }) => type === 'status').map(({ data }) => data as unknown);
  if (told.length > 0) return told as StatusData[];
  const { status, attempt, created_at, started_at, finished_at, error } = job;
  return [
    { status: 'queued', at: created_at },
    ...(started_at === null ? [] : [{ status: 'active' as const, at: started_at, attempt }]),
    ...(finished_at === null ? [] : [{ status, at: finished_at, attempt, error }]),
  ];
}

export function spansOf(
  job: Job,
  events: readonly JobEvent[],
  steps: readonly JobStep[],
): readonly Span[] {
  const statuses = statusesOf(job, events);
  const attempts: Span[] = [];
  const spans: Span[] = [];
  for (const [i, { status, at, attempt = 0, error, run_at }] of statuses.entries()) {
    const from = Date.parse(at);
    const next = statuses[i + 1];
    const to = next === undefined ? null : Date.parse(next.at);
    const key = `${i} ${status}`;
    if (status === 'active') {
      const span: Span = {
        key,
        kind: 'attempt',
        label: `Attempt ${attempt}`,
        from,
        to,
        ...endOfAttempt(next),
      };
      attempts.push(span);
      spans.push(span);
    } else if (status === 'queued') {
      if (i === 0) spans.push(mark('accepted', 'Accepted', from, 'neutral'));
      // The job's own time is that of its latest wait.
      const due = i > 0 ? run_at : job.attempt <= 1 ? job.run_at : undefined;
      const dueAt = due === undefined ? from : Date.parse(due);
      spans.push({
        key,
        kind: 'waiting',
        label: i === 0 ? 'Queued' : 'Waiting',
        from,
        to,
        tone: 'neutral',
        outcome: next === undefined ? 'waiting' : hasEnded(next) ? 'ended' : 'taken up',
        error: null,
        ...(dueAt > from && { dueAt }),
      });
    } else {
      const { tone } = outcomes[status] ?? { tone: 'neutral' as const };
      spans.push({
        ...mark('settled', wordOf[status] ?? status, from, tone),
        error: faultOf(status, error),
      });
    }
  }
  return spans.flatMap((span) =>
    span.kind === 'attempt' ? [span, ...within(span, attempts, steps)] : [span],
  );
}

const wordOf: Record<string, string> = {
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

const outcomes: Record<string, { tone: Tone }> = {
  completed: { tone: 'good' },
  failed: { tone: 'bad' },
  cancelled: { tone: 'neutral' },
};

/** A cancellation is not an error. */
const faultOf = (status: string, error: Failure | null | undefined): Failure | null =>
  status === 'cancelled' ? null : (error ?? null);

function mark(kind: Span['kind'], label: string, at: number, tone: Tone): Span {
  return { key: kind, kind, label, from: at, to: at, tone, outcome: '', error: null };
}

function endOfAttempt(next: StatusData | undefined): Pick<Span, 'tone' | 'outcome' | 'error'> {
  if (next === undefined) return { tone: 'busy', outcome: 'running', error: null };
  const error = faultOf(next.status, next.error);
  if (next.status === 'queued' && error === null) {
    return { tone: 'neutral', outcome: 'given back, does not count', error };
  }
  if (next.status === 'queued') return { tone: 'bad', outcome: 'failed, tried again', error };
  return { tone: outcomes[next.status]?.tone ?? 'neutral', outcome: next.status, error };
}

/** The steps that began in this attempt, each below its parent step. */
function within(attempt: Span, attempts: readonly Span[], steps: readonly JobStep[]): Span[] {
  const next = attempts[attempts.indexOf(attempt) + 1];
  const isFirst = attempts[0] === attempt;
  const own = steps.filter(({ started_at }) => {
    const at = Date.parse(started_at);
    return (isFirst || at >= attempt.from) && (next === undefined || at < next.from);
  });
  return nested(own).map(({ step, depth }) => ({
    key: `step ${step.step}`,
    kind: step.kind,
    label: step.name,
    from: Date.parse(step.started_at),
    to: step.finished_at === null ? null : Date.parse(step.finished_at),
    tone: toneOfStep[step.status],
    outcome: step.status === 'active' ? 'running' : step.status,
    error: step.error,
    step,
    depth,
  }));
}

/** Steps as a tree that is read from top to bottom. The parent of a step may be of an earlier attempt. */
function nested(steps: readonly JobStep[]): { step: JobStep; depth: number }[] {
  const numbers = new Set(steps.map(({ step }) => step));
  const below = Map.groupBy(steps, ({ parent_step_id: parent }) =>
    parent !== null && numbers.has(parent) ? parent : null,
  );
  const visit = (parent: number | null, depth: number): { step: JobStep; depth: number }[] =>
    (below.get(parent) ?? []).flatMap((step) => [{ step, depth }, ...visit(step.step, depth + 1)]);
  return visit(null, 0);
}

const toneOfStep: Record<JobStep['status'], Tone> = {
  active: 'busy',
  completed: 'accent',
  failed: 'bad',
  interrupted: 'warn',
};

/** A moment between two spans, without length or end. */
export const isMoment = ({ kind }: Span): boolean => kind === 'accepted' || kind === 'settled';

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500].concat(
  ...[1, 2, 5, 10, 15, 30].map((s) => s * 1_000),
  ...[1, 2, 5, 10, 15, 30].map((min) => min * 60_000),
  ...[1, 2, 3, 6, 12, 24, 48, 96, 168].map((h) => h * 3_600_000),
);

/** Milliseconds between two ticks of an axis that is so long, so that there are at most `most`. */
export function tickStep(length: number, most: number): number {
  return steps.find((step) => length / step <= most) ?? length / most;
}

/** Within its day, in UTC. */
export const clockText = (ms: number): string => new Date(ms).toISOString().slice(11, 23);

/** All that there is to say of a span, in one line. */
export function spanText(span: Span, end: number): string {
  const { from, to, outcome, error } = span;
  const reason = error === null ? '' : `${error.code}: ${error.message}`;
  if (isMoment(span)) return [`${clockText(from)} UTC`, reason].filter(Boolean).join(' · ');
  const until = to === null ? 'now' : clockText(to);
  const parts = [`${clockText(from)} – ${until} UTC`, durationText((to ?? end) - from), outcome];
  return [...parts, reason].filter(Boolean).join(' · ');
}
