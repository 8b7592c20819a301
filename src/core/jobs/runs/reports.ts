/**
 * Reports of runs: recorded in the job's event stream in order, and published once they are
 * recorded. Grouped across runs, so that skills with many reports cost few commits.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { Batch } from '../../../adapters/database/batch.ts';
import type { Transaction } from '../../../adapters/database/database.ts';
import { type Clock, timestamp } from '../../../kernel/clock.ts';
import { isUnavailable } from '../../../kernel/errors.ts';
import type { Context } from '../../context/context.ts';
import type { RunReport } from '../../executors/run.ts';
import type { JobEvent, JobFeed } from '../feed.ts';
import type { JobEventData, JobEventType, TypedJobEvent } from '../job-events.schemas.ts';
import { insertJobEvents } from '../job-events.store.ts';
import { type ClaimedJob, setJobProgress } from '../jobs.store.ts';

/** Events that one attempt may add to its stream; later ones are dropped. */
const eventsPerAttemptMax = 5_000;

/** Of these, deltas of a model's text, which is also recorded whole at its end. */
const piecesPerAttemptMax = 3_000;

/**
 * Deltas of the texts of all runs are recorded together, at most once in so many milliseconds: a commit of SQLite
 * holds up the process, and 500 models that talk at once would make it commit without a pause.
 */
const textEveryMs = 50;
/** How long the text of a job without listeners waits for more, with which it becomes one event. */
const unlistenedMs = 1_000;
/** Characters beyond which an event takes no further text. */
const deltaCharactersMax = 4_096;

/** Between two tries to record while the database cannot be used, and how many in a row. */
const retryMs = 500;
const triesMax = 60;

/** One report of a run. */
export type Report = {
  [Type in Exclude<JobEventType, 'status'>]: {
    readonly type: Type;
    readonly data: Omit<JobEventData<Type>, 'at'>;
  };
}[Exclude<JobEventType, 'status'>];

interface Recorded {
  readonly job: ClaimedJob;
  readonly event: JobEvent;
}

/** The common pace of texts. */
interface Texts {
  /** By the monotonic clock. */
  recordedAt: number;
  /** Streams that have nothing but text to record. */
  readonly held: Set<ReportStream>;
  /** Whether a timer will release some of them. */
  isWaiting: boolean;
}

type TextDelta = Omit<JobEventData<'token'>, 'at'>;

/** The reports of all runs in this process. */
export class Reports {
  readonly context: Context;
  readonly feed: JobFeed;
  readonly batch: Batch<Recorded, undefined>;
  readonly texts: Texts = {
    recordedAt: Number.NEGATIVE_INFINITY,
    held: new Set(),
    isWaiting: false,
  };

  constructor(context: Context, feed: JobFeed) {
    this.context = context;
    this.feed = feed;
    this.batch = new Batch(context.database, (tx, all) => recordAll(this, tx, all));
  }

  open(job: ClaimedJob): ReportStream {
    return new ReportStream(this, job);
  }
}

/** The stream of one attempt. */
export class ReportStream {
  readonly reports: Reports;
  readonly job: ClaimedJob;
  /** Events so far, and of these the deltas of a model's text. */
  n = 0;
  pieces = 0;
  /** Not yet being recorded. */
  waiting: JobEvent[] = [];
  /** The last of them, where it is text and was not tried to be recorded. */
  text: TextDelta | null = null;
  /** Resolves when nothing waits any more; null when nothing is being recorded. */
  recording: Promise<void> | null = null;
  /** Since when its texts are held, by the monotonic clock, and what ends that. */
  heldSince = 0;
  release: (() => void) | undefined;
  /** Whether its texts are not held. */
  isFlushed = false;

  constructor(reports: Reports, job: ClaimedJob) {
    this.reports = reports;
    this.job = job;
  }

  add({ type, data }: Report): void {
    const { context, texts } = this.reports;
    if (type === 'token' && extendText(this, data)) return;
    this.text = null;
    if (this.n >= eventsPerAttemptMax) return;
    if (type === 'token' && ++this.pieces > piecesPerAttemptMax) return;
    const at = timestamp(context.clock.now());
    // The compiler does not see that the data is still that of the type.
    const event = { type, data: { ...data, at } } as TypedJobEvent;
    this.waiting.push({ epoch: this.job.epoch, n: ++this.n, ...event });
    if (event.type === 'token') this.text = event.data;
    else release(texts, this);
    this.recording ??= recordWaiting(this);
  }

  /** Resolves when every report so far is recorded, or has failed to be. */
  flushed(): Promise<void> {
    if (this.recording === null) return Promise.resolve();
    this.isFlushed = true;
    release(this.reports.texts, this);
    return this.recording;
  }
}

/** Appends a delta to the one before it, where that still waits. Returns whether it did. */
function extendText({ text: last }: ReportStream, delta: TextDelta): boolean {
  if (last === null || last.step !== delta.step) return false;
  if (last.text.length + delta.text.length > deltaCharactersMax) return false;
  last.text += delta.text;
  return true;
}

/** Resolves when the texts of all runs are recorded next. */
async function textTurn(stream: ReportStream): Promise<void> {
  const { texts, feed, context } = stream.reports;
  const { clock } = context;
  const now = clock.monotonic();
  const waitMs = texts.recordedAt + textEveryMs - now;
  if (waitMs <= 0 && feed.hasListeners(stream.job.id)) {
    texts.recordedAt = now;
    return;
  }
  if (!texts.isWaiting) setTimeout(releaseDue, Math.max(waitMs, 0), texts, feed, clock);
  texts.isWaiting = true;
  stream.heldSince = now;
  texts.held.add(stream);
  await new Promise<void>((resolve) => {
    stream.release = resolve;
  });
}

/**
 * Ends the wait of the texts that have listeners. All others that have waited for some time are recorded with the first
 * of them whose time is over, so that their commits are few.
 */
function releaseDue(texts: Texts, feed: JobFeed, clock: Clock): void {
  const now = clock.monotonic();
  // The first one is held for longest.
  const [oldest] = texts.held;
  const isOver = oldest !== undefined && now - oldest.heldSince >= unlistenedMs;
  const dueMs = isOver ? unlistenedMs / 2 : unlistenedMs;
  for (const stream of texts.held) {
    if (now - stream.heldSince < dueMs && !feed.hasListeners(stream.job.id)) continue;
    texts.recordedAt = now;
    release(texts, stream);
  }
  texts.isWaiting = texts.held.size > 0;
  if (texts.isWaiting) setTimeout(releaseDue, textEveryMs, texts, feed, clock);
}

function release({ held }: Texts, stream: ReportStream): void {
  if (held.delete(stream)) stream.release?.();
}

/**
 * Records the waiting reports in order. While the database is unavailable it waits and tries again. The
 * tries are counted over all reports, so that those made during an outage do not make the wait longer.
 */
async function recordWaiting(stream: ReportStream): Promise<void> {
  const { batch, context } = stream.reports;
  const { job } = stream;
  let tries = 0;
  // Reports made in one synchronous piece of code are recorded together.
  await Promise.resolve();
  while (stream.waiting.length > 0) {
    const hasTextAlone = stream.waiting.every(({ type }) => type === 'token');
    if (hasTextAlone && !stream.isFlushed && tries === 0) await textTurn(stream);
    const events = stream.waiting;
    stream.waiting = [];
    stream.text = null;
    const results = await Promise.allSettled(events.map((event) => batch.add({ job, event })));
    if (results.some(({ status }) => status === 'fulfilled')) tries = 0;
    const failure = results.find((result) => result.status === 'rejected');
    if (failure === undefined) continue;
    if (isUnavailable(failure.reason) && ++tries < triesMax) {
      const failed = events.filter((_, i) => results[i]?.status === 'rejected');
      stream.waiting = [...failed, ...stream.waiting];
      await elapsed(retryMs);
    } else {
      context.log.error({ err: failure.reason }, 'the events of a run could not be recorded');
    }
  }
  stream.recording = null;
  stream.isFlushed = false;
}

async function recordAll(
  { feed, context }: Reports,
  tx: Transaction,
  all: readonly Recorded[],
): Promise<undefined[]> {
  const { clock } = context;
  const rowOf = ({ job, event }: Recorded) => ({
    job_id: job.id,
    epoch: event.epoch,
    n: event.n,
    type: event.type,
    data: JSON.stringify(event.data),
    created_at: clock.now(),
  });
  await insertJobEvents(tx, all.map(rowOf));
  await setJobProgress(tx, lastProgress(all));
  tx.afterCommit(() => {
    for (const { job, event } of all) feed.publish(job.id, event);
  });
  return all.map(() => undefined);
}

/** A report of an executor, for the stream. */
export function reportOf(report: RunReport): Report {
  switch (report.type) {
    case 'log': {
      const { message, fields } = report;
      return { type: 'log', data: fields === undefined ? { message } : { message, fields } };
    }
    case 'progress':
      return {
        type: 'progress',
        data: { fraction: report.fraction, note: report.note ?? null },
      };
    case 'message':
      return { type: 'message', data: { role: report.role, content: report.content } };
  }
}

/** The last reported progress of each job. */
function lastProgress(all: readonly Recorded[]) {
  const rows = new Map<string, { id: string; epoch: number; progress: string }>();
  for (const { job, event } of all) {
    if (event.type !== 'progress') continue;
    const { fraction, note } = event.data;
    rows.set(job.id, {
      id: job.id,
      epoch: job.epoch,
      progress: JSON.stringify({ fraction, note }),
    });
  }
  return [...rows.values()];
}
