/** The spans of a job's timeline, from its status events, its row and its steps. No I/O. */

import type { JobEvent } from '../api/follow.ts';
import { hasEnded, type Job, type JobStep } from '../api/jobs.ts';
import type { Tone } from '../ui/Status.tsx';
import { type Interval, union, without } from './intervals.ts';
import { isWait, waitOutcome } from './waits.ts';

interface Failure {
  readonly code: string;
  readonly message: string;
}

export interface Span {
  readonly key: string;
  readonly kind: 'accepted' | 'queued' | 'attempt' | 'settled' | JobStep['kind'];
  readonly label: string;
  /** Milliseconds since the epoch. */
  readonly from: number;
  /** Null while it is active; equals `from` for a moment. */
  readonly to: number | null;
  readonly tone: Tone;
  /** How it ended, in a word or two; of an open wait, what it waits for. */
  readonly outcome: string;
  readonly error: Failure | null;
  /** Until when a wait was meant to last. */
  readonly dueAt?: number;
  readonly step?: JobStep;
  /** How many steps of the attempt led to this one. */
  readonly depth?: number;
  /** Whether other steps are shown below it. */
  readonly isParent?: boolean;
  /** Of an attempt: when it only waited, so that its run was unloaded. */
  readonly idle?: readonly Interval[];
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
  const recorded = events
    .filter(({ type }) => type === 'status')
    .map(({ data }) => data as unknown);
  if (recorded.length > 0) return recorded as StatusData[];
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
  const phases = phasesOf(job, statusesOf(job, events));
  const attempts = phases.filter(({ status }) => status === 'active');
  return phases.flatMap((phase, i): Span[] => {
    const { status, error } = phase;
    const next = phases[i + 1];
    if (status === 'active') return spansOfAttempt(phase, next, attempts, steps);
    if (status === 'queued') return spansOfQueue(job, phase, next);
    const { tone } = outcomes[status] ?? { tone: 'neutral' as const };
    const end = mark('settled', wordOf[status] ?? status, phase.from, tone);
    return [{ ...end, error: faultOf(status, error) }];
  });
}

/** A job from one change of its status to the next. An attempt is one phase, with all its waits. */
interface Phase extends StatusData {
  readonly key: string;
  readonly from: number;
  readonly to: number | null;
  /** Whether the attempt waits now. */
  readonly isWaiting: boolean;
  /** When the attempt waited. */
  readonly waits: readonly Interval[];
}

interface OpenPhase extends Phase {
  to: number | null;
  isWaiting: boolean;
  readonly waits: { from: number; to: number }[];
}

function phasesOf(job: Job, statuses: readonly StatusData[]): readonly Phase[] {
  const phases: OpenPhase[] = [];
  for (const [i, entry] of statuses.entries()) {
    const from = Date.parse(entry.at);
    const last = phases.at(-1);
    const open = last?.waits.at(-1);
    if (open?.to === Number.POSITIVE_INFINITY) open.to = from;
    if (last?.status === 'active' && (entry.status === 'waiting' || isResumed(entry, last))) {
      last.isWaiting = entry.status === 'waiting';
      if (last.isWaiting) last.waits.push({ from, to: Number.POSITIVE_INFINITY });
      continue;
    }
    if (last !== undefined) last.to = from;
    const key = `${i} ${entry.status}`;
    phases.push({ ...entry, key, from, to: null, isWaiting: false, waits: [] });
  }
  const last = phases.at(-1);
  if (last?.status === 'active' && job.status === 'waiting') last.isWaiting = true;
  return phases;
}

/** Whether a run goes on with the attempt that it was in. */
const isResumed = (entry: StatusData, { attempt }: Phase): boolean =>
  entry.status === 'active' && entry.attempt === attempt;

function spansOfQueue(job: Job, { key, from, to, run_at }: Phase, next: Phase | undefined): Span[] {
  const isFirst = key === '0 queued';
  // The job's own time is that of its latest wait.
  const due = isFirst ? (job.attempt <= 1 ? job.run_at : undefined) : run_at;
  const dueAt = due === undefined ? from : Date.parse(due);
  const queued: Span = {
    key,
    kind: 'queued',
    label: isFirst ? 'Queued' : 'Queued again',
    from,
    to,
    tone: 'neutral',
    outcome: next === undefined ? 'queued' : hasEnded(next) ? 'ended' : 'taken up',
    error: null,
    ...(dueAt > from && { dueAt }),
  };
  return isFirst ? [mark('accepted', 'Accepted', from, 'neutral'), queued] : [queued];
}

function spansOfAttempt(
  phase: Phase,
  next: Phase | undefined,
  attempts: readonly Phase[],
  steps: readonly JobStep[],
): Span[] {
  const { key, attempt = 0, from, to } = phase;
  const own = stepsWithin(phase, attempts, steps);
  const span: Span = {
    key,
    kind: 'attempt',
    label: `Attempt ${attempt}`,
    from,
    to,
    ...endOfAttempt(phase, next),
    idle: union([...phase.waits, ...idleIn(own)]),
  };
  return [span, ...nested(own).map(spanOfStep)];
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

function endOfAttempt(
  { isWaiting }: Phase,
  next: Phase | undefined,
): Pick<Span, 'tone' | 'outcome' | 'error'> {
  if (next === undefined) {
    return isWaiting
      ? { tone: 'accent', outcome: 'waiting', error: null }
      : { tone: 'busy', outcome: 'running', error: null };
  }
  const error = faultOf(next.status, next.error);
  if (next.status === 'queued' && error === null) {
    return { tone: 'neutral', outcome: 'given back, does not count', error };
  }
  if (next.status === 'queued') return { tone: 'bad', outcome: 'failed, tried again', error };
  return { tone: outcomes[next.status]?.tone ?? 'neutral', outcome: next.status, error };
}

/** The steps that began in this attempt. */
function stepsWithin(
  attempt: Phase,
  attempts: readonly Phase[],
  steps: readonly JobStep[],
): JobStep[] {
  const next = attempts[attempts.indexOf(attempt) + 1];
  const isFirst = attempts[0] === attempt;
  return steps.filter(({ started_at }) => {
    const at = Date.parse(started_at);
    return (isFirst || at >= attempt.from) && (next === undefined || at < next.from);
  });
}

const intervalOf = ({ started_at, finished_at }: JobStep): Interval => ({
  from: Date.parse(started_at),
  to: finished_at === null ? Number.POSITIVE_INFINITY : Date.parse(finished_at),
});

/** When steps of an attempt waited and no other one was active: what only waits for its own steps is not. */
function idleIn(steps: readonly JobStep[]): Interval[] {
  const parents = new Set(steps.map(({ parent_step_id }) => parent_step_id));
  const hasInner = ({ step, kind }: JobStep) => kind !== 'model' && parents.has(step);
  const waits = steps.filter(isWait);
  const active = steps.filter((step) => !isWait(step) && !hasInner(step));
  return without(union(waits.map(intervalOf)), union(active.map(intervalOf)));
}

function spanOfStep({ step, depth, isParent }: NestedStep): Span {
  const { status, kind, due_at, error } = step;
  const { from, to } = intervalOf(step);
  return {
    key: `step ${step.step}`,
    kind,
    label: step.name,
    from,
    to: to === Number.POSITIVE_INFINITY ? null : to,
    tone: toneOfStep[status],
    outcome: isWait(step) ? waitOutcome(step) : status === 'active' ? 'running' : status,
    error,
    ...(due_at !== null && kind !== 'run' && { dueAt: Date.parse(due_at) }),
    step,
    depth,
    isParent,
  };
}

interface NestedStep {
  readonly step: JobStep;
  readonly depth: number;
  readonly isParent: boolean;
}

/** Steps as a tree that is read from top to bottom. The parent of a step may be of an earlier attempt. */
function nested(steps: readonly JobStep[]): NestedStep[] {
  const numbers = new Set(steps.map(({ step }) => step));
  const below = Map.groupBy(steps, ({ parent_step_id: parent }) =>
    parent !== null && numbers.has(parent) ? parent : null,
  );
  const visit = (parent: number | null, depth: number): NestedStep[] =>
    (below.get(parent) ?? []).flatMap((step) => {
      const isParent = below.has(step.step);
      return [{ step, depth, isParent }, ...visit(step.step, depth + 1)];
    });
  return visit(null, 0);
}

/** Without the steps below those that are folded. */
export function unfolded(spans: readonly Span[], folded: ReadonlySet<string>): readonly Span[] {
  let deepest = Number.POSITIVE_INFINITY;
  return spans.filter(({ key, depth = -1 }) => {
    if (depth > deepest) return false;
    deepest = folded.has(key) ? depth : Number.POSITIVE_INFINITY;
    return true;
  });
}

const toneOfStep: Record<JobStep['status'], Tone> = {
  active: 'busy',
  waiting: 'accent',
  completed: 'accent',
  failed: 'bad',
  interrupted: 'warn',
};
