/**
 * The status events of a job's stream. Live listeners get them at once; a client that connects later
 * gets equal ones, made from the job's row.
 */
import { timestamp } from '../../kernel/clock.ts';
import type { RunObserver } from '../context/run-observer.ts';
import { completedJob } from './completed-job.ts';
import { attemptEndN, endingN, type JobEvent, type JobFeed, type Position } from './feed.ts';
import type { JobEventData } from './job-events.schemas.ts';
import type { JobRow } from './jobs.store.ts';
import type { Settled } from './settle-effects.ts';
import type { JobError, Transition } from './states.ts';

/** Publishes the begins and ends of claims in the streams of their jobs. An event without a listener is not made. */
export class StatusStream implements RunObserver {
  readonly #feed: JobFeed;

  constructor(feed: JobFeed) {
    this.#feed = feed;
  }

  begun(job: ActiveClaim): void {
    if (this.#feed.hasListeners(job.id)) this.#feed.publish(job.id, activeEvent(job));
  }

  delivered(job: ActiveClaim, to: string): void {
    if (this.#feed.hasListeners(job.id)) this.#feed.publish(job.id, deliveredEvent(job, to));
  }

  ended(settled: Settled, now: number): void {
    const { job, transition } = settled;
    if (!this.#feed.hasListeners(job.id)) return;
    this.#feed.publish(job.id, endingEvent(job, transition, now), completedJob(settled, now));
  }
}

/** The part of a claim that its events contain. */
type Claim = Pick<JobRow, 'epoch' | 'attempt'>;
type ActiveClaim = Claim & Pick<JobRow, 'id' | 'started_at' | 'resumed_at'>;

/** The first event of every job's stream. */
export function queuedEvent(job: Pick<JobRow, 'created_at'>): JobEvent {
  return statusEvent({ epoch: 0, n: 0 }, { status: 'queued', at: timestamp(job.created_at) });
}

/** The first event of a claim: its attempt begins, or goes on after a wait. */
export function activeEvent(job: Omit<ActiveClaim, 'id'>): JobEvent {
  const { epoch, attempt, started_at, resumed_at } = job;
  const resumed = resumed_at === null ? {} : { resumed_at: timestamp(resumed_at) };
  const at = timestamp(resumed_at ?? started_at ?? 0);
  return statusEvent({ epoch, n: 0 }, { status: 'active', attempt, at, ...resumed });
}

/** The last event of a claim; the job's last one too, unless the job is queued again or waits. */
export function endingEvent(
  { epoch, attempt }: Claim,
  transition: Transition,
  now: number,
): JobEvent {
  const data = { status: transition.status, attempt, at: timestamp(now) };
  switch (transition.status) {
    case 'completed':
      return statusEvent({ epoch, n: endingN }, data);
    case 'queued': {
      const { error, runAt } = transition;
      const waiting = { ...data, error, run_at: timestamp(runAt) };
      return statusEvent({ epoch, n: attemptEndN }, waiting);
    }
    case 'waiting': {
      const waiting = { ...data, due_at: timestamp(transition.dueAt) };
      return statusEvent({ epoch, n: attemptEndN }, waiting);
    }
    default:
      return statusEvent({ epoch, n: endingN }, { ...data, error: transition.error });
  }
}

/** The last event of a job before its end, where the run of another one has taken its message. */
export function deliveredEvent(
  { epoch, attempt, started_at }: Omit<ActiveClaim, 'id' | 'resumed_at'>,
  to: string,
): JobEvent {
  const at = timestamp(started_at ?? 0);
  return statusEvent(
    { epoch, n: attemptEndN },
    { status: 'waiting', attempt, delivered_to: to, at },
  );
}

/** The last event of a job that has ended, from its row. */
export function endOfJob(job: JobRow): JobEvent {
  const { epoch, attempt, status, finished_at } = job;
  const error = job.error === null ? {} : { error: JSON.parse(job.error) as JobError };
  const data = { status, attempt, at: timestamp(finished_at ?? 0), ...error };
  return statusEvent({ epoch, n: endingN }, data);
}

function statusEvent(position: Position, data: JobEventData<'status'>): JobEvent {
  return { ...position, type: 'status', data };
}
