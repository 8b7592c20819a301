/**
 * A job's event stream from any position: the recorded events first, then the live ones, each once
 * and in order, until the job has ended. Events that follow from the job's own row (accepted,
 * running, ended) are not stored; they are made from the row.
 */
import type { Database } from '../../adapters/database/database.ts';
import type { JobEventsTable } from '../../adapters/database/tables.ts';
import {
  attemptEndN,
  type JobEvent,
  type JobFeed,
  type Position,
  type Subscription,
} from './feed.ts';
import type { TypedJobEvent } from './job-events.schemas.ts';
import { listJobEvents } from './job-events.store.ts';
import { findJob, type JobRow } from './jobs.store.ts';
import { isFinal } from './states.ts';
import { activeEvent, endOfJob, queuedEvent } from './status-events.ts';

/** Recorded events read at a time. */
const pageSize = 500;
/** Live events kept for a slow client; beyond them it has to reconnect with Last-Event-ID. */
const backlogMax = 5_000;

/** Before the first event. */
export const beginning: Position = { epoch: 0, n: -1 };

function isAfter(a: Position, b: Position): boolean {
  return a.epoch > b.epoch || (a.epoch === b.epoch && a.n > b.n);
}

/** Yields the events after `position`; ends with the job or when `signal` aborts. */
export async function* jobStream(
  parts: { database: Database; feed: JobFeed },
  organizationId: string,
  jobId: string,
  position: Position,
  signal: AbortSignal,
): AsyncGenerator<JobEvent> {
  const { database, feed } = parts;
  const live = new LiveEvents(feed, jobId, signal);
  let at = position;
  try {
    await live.ready;
    for (;;) {
      for await (const event of recordedEvents(database, organizationId, jobId, at)) {
        yield event;
        at = event;
        if (isEnd(event)) return;
      }
      // A client that reconnects after it had the last event has nothing to wait for.
      const job = await findJob(database.read, organizationId, jobId);
      if (job === undefined || (isFinal(job.status) && !isAfter(endOfJob(job), at))) return;
      let hasMissed = false;
      for await (const event of live.events()) {
        hasMissed = event === null || (feed.isShared && isAfter(event, at) && !follows(event, at));
        if (hasMissed || event === null) break;
        if (isAfter(event, at)) {
          yield event;
          at = event;
        }
        if (isEnd(event)) return;
      }
      if (!hasMissed) return;
    }
  } finally {
    live.stop();
  }
}

/** Whether no event can lie between two events of a job. */
function follows(event: Position, at: Position): boolean {
  return event.epoch === at.epoch && event.n === at.n + 1;
}

function isEnd({ type, data }: JobEvent): boolean {
  return type === 'status' && isFinal(data.status);
}

/** Yields the events after `position` that are recorded now, and what the job's row shows. */
export async function* recordedEvents(
  database: Database,
  organizationId: string,
  jobId: string,
  position: Position,
): AsyncGenerator<JobEvent> {
  let at = position;
  for (;;) {
    // The job is read before its events, so the events of every claim that it shows as ended are recorded.
    const job = await findJob(database.read, organizationId, jobId);
    if (job === undefined) return;
    const { events, isAll } = await listJobEvents(database.read, jobId, at, pageSize);
    // The events of a claim newer than the row that was read follow when the job is read again.
    const rows = events.filter(({ epoch }) => epoch <= job.epoch);
    const isWhole = isAll && rows.length === events.length;
    const endings = await endingsOf(database, rows, isWhole);
    for (const event of withStates(job, rows, endings, isWhole)) {
      if (!isAfter(event, at)) continue;
      yield event;
      at = event;
    }
    if (isWhole) return;
  }
}

/** The end of a claim that did not end its job; it carries the start of the claim. */
interface ClaimEnding {
  readonly attempt: number;
  readonly started_at: string;
  /** Of a claim with which an attempt went on after a wait. */
  readonly resumed_at?: string;
}

/** The endings of the claims in `rows`, by epoch; the last claim's may lie beyond the page. */
async function endingsOf(
  database: Database,
  rows: readonly JobEventsTable[],
  isWhole: boolean,
): Promise<Map<number, ClaimEnding>> {
  const known = rows.filter(({ n }) => n === attemptEndN);
  const last = rows.at(-1);
  if (last !== undefined && !isWhole) {
    const before = { epoch: last.epoch, n: attemptEndN - 1 };
    const { events } = await listJobEvents(database.read, last.job_id, before, 1);
    known.push(...events.filter(({ epoch }) => epoch === last.epoch));
  }
  return new Map(known.map(({ epoch, data }) => [epoch, JSON.parse(data) as ClaimEnding]));
}

/** Recorded events, with those that follow from the job's row inserted in order. */
function withStates(
  job: JobRow,
  rows: readonly JobEventsTable[],
  endings: ReadonlyMap<number, ClaimEnding>,
  isWhole: boolean,
): JobEvent[] {
  const events: JobEvent[] = [queuedEvent(job)];
  const begun = new Set<number>();
  for (const row of rows) {
    const shown = { type: row.type, data: dataOf(row) } as TypedJobEvent;
    // A message that another run has taken has no run of its own.
    const isDelivered = shown.type === 'status' && shown.data.delivered_to !== undefined;
    if (!begun.has(row.epoch) && !isDelivered) {
      events.push(beginningOf(job, row.epoch, endings.get(row.epoch)));
    }
    begun.add(row.epoch);
    events.push({ epoch: row.epoch, n: row.n, ...shown });
  }
  if (!isWhole) return events;
  const { epoch, started_at } = job;
  const isLatestClaim = started_at !== null && (job.status === 'active' || isFinal(job.status));
  if (isLatestClaim && !begun.has(epoch)) events.push(activeEvent(job));
  if (isFinal(job.status)) events.push(endOfJob(job));
  return events;
}

/** The first event of a claim, from its recorded ending or, before it has ended, from the job. */
function beginningOf(job: JobRow, epoch: number, ending: ClaimEnding | undefined): JobEvent {
  if (ending === undefined) return activeEvent({ ...job, epoch });
  const { attempt, started_at, resumed_at } = ending;
  const resumed = resumed_at === undefined ? {} : { resumed_at };
  const at = resumed_at ?? started_at;
  return { epoch, n: 0, type: 'status', data: { status: 'active', attempt, at, ...resumed } };
}

/** The data of a recorded event; the times in a recorded ending are not part of it. */
function dataOf({ n, data }: JobEventsTable): Record<string, unknown> {
  const recorded = JSON.parse(data) as Record<string, unknown>;
  if (n !== attemptEndN) return recorded;
  const { started_at: _, resumed_at: __, ...shown } = recorded;
  return shown;
}

/** The events of a job from now on; null where some may have been missed. */
class LiveEvents {
  readonly #backlog: (JobEvent | null)[] = [];
  readonly #subscription: Subscription;
  #wake: (() => void) | null = null;
  #isStopped: boolean;

  constructor(feed: JobFeed, jobId: string, signal: AbortSignal) {
    this.#isStopped = signal.aborted;
    this.#subscription = feed.subscribe(jobId, (event) => this.#add(event));
    signal.addEventListener('abort', () => this.stop(), { once: true });
  }

  get ready(): Promise<void> | null {
    return this.#subscription.ready;
  }

  stop(): void {
    this.#isStopped = true;
    this.#subscription.stop();
    this.#wake?.();
  }

  #add(event: JobEvent | null): void {
    // One read of the database finds every event that was missed so far.
    if (event === null && this.#backlog.at(-1) === null) return;
    this.#backlog.push(event);
    if (this.#backlog.length > backlogMax) this.stop();
    this.#wake?.();
  }

  async *events(): AsyncGenerator<JobEvent | null> {
    for (;;) {
      const event = this.#backlog.shift();
      if (event !== undefined) yield event;
      else if (this.#isStopped) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = null;
      }
    }
  }
}
