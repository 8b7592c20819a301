/**
 * Cancels or repeats all jobs that filters name, in small transactions with pauses in which other work is recorded. A
 * request ends after some seconds and says where it stopped; a repetition goes on, also after a crash: a cancelled job is
 * not found again, nor is one that was run again.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Caller } from '../../kernel/caller.ts';
import type { Clock } from '../../kernel/clock.ts';
import { invalid, PlatformError } from '../../kernel/errors.ts';
import type { Context } from '../context/context.ts';
import { requestCancellations } from './families.store.ts';
import { boundedTotalMax, type JobFilters } from './job-lists.store.ts';
import type { JobRow } from './jobs.store.ts';
import type { JobsParts } from './jobs.ts';
import {
  countOf,
  type ManyAsked,
  nextIds,
  nextRows,
  openOnes,
  retryableOnes,
} from './many-jobs.store.ts';
import { retryJob } from './retry.ts';

/** Jobs of one transaction that are cancelled, and jobs that are run again side by side. */
const cancelledMax = 50;
const retriedMax = 20;
/** `next`: the id of a job, and the moment by which jobs must have been accepted. */
const nextPattern = /^([0-9a-f-]{36})(?:\.(\d{1,15}))?$/;
/** After so long a request is answered. */
const budgetMs = 5_000;

/** Which jobs, and how. */
export interface ManyCommand {
  readonly filters: JobFilters;
  /** Only counts them. */
  readonly isDryRun: boolean;
  /** `next` of an earlier request: where that stopped, and when the first one began. */
  readonly after?: string | undefined;
}

/** What a request has done, and what is left. */
interface Progress {
  readonly done: boolean;
  /** Jobs that a next request finds, counted to 10,000. */
  readonly remaining: number;
  /** What a next request has as `after`; null when nothing is left. */
  readonly next: string | null;
}

type Parts = JobsParts & { readonly context: Context };

/** Cancels unended jobs: how many have ended, and how many are being stopped. */
export async function cancelMany(
  { context, ...parts }: Parts,
  organizationId: string,
  command: ManyCommand,
): Promise<Progress & { cancelled: number; stopping: number }> {
  requireFilter(command);
  const { read } = context.database;
  const counts = { cancelled: 0, stopping: 0 };
  let left = askedOf(context, organizationId, command);
  let isEnd = false;
  const pace = new Pace(context.clock);
  while (!command.isDryRun) {
    const ids = await nextIds(openOnes(read, left), cancelledMax);
    if (ids.length > 0) await cancelChunk(context, parts, ids, counts);
    left = { ...left, after: ids.at(-1) ?? left.after };
    isEnd = ids.length < cancelledMax;
    if (isEnd || (await pace.isLate())) break;
  }
  const remaining = isEnd ? 0 : await countOf(read, openOnes(read, left), boundedTotalMax);
  return { ...counts, ...progressOf(left, remaining) };
}

/** Repeats failed or cancelled jobs as the caller: how many, and how many were refused, by the code of the refusal. */
export async function retryMany(
  { context, ...parts }: Parts,
  caller: Caller,
  command: ManyCommand,
): Promise<Progress & { retried: number; refused: Record<string, number> }> {
  requireFilter(command);
  const { read } = context.database;
  const filters = { status: 'failed' as const, ...command.filters };
  const counts = { retried: 0, refused: {} as Record<string, number> };
  let left = askedOf(context, caller.organizationId, { ...command, filters });
  let isEnd = false;
  const pace = new Pace(context.clock);
  while (!command.isDryRun) {
    const jobs = await nextRows(retryableOnes(read, left), retriedMax);
    await Promise.all(jobs.map((job) => retryOne(context, parts, caller, job, counts)));
    left = { ...left, after: jobs.at(-1)?.id ?? left.after };
    isEnd = jobs.length < retriedMax;
    if (isEnd || (await pace.isLate())) break;
  }
  const remaining = isEnd ? 0 : await countOf(read, retryableOnes(read, left), boundedTotalMax);
  return { ...counts, ...progressOf(left, remaining) };
}

function progressOf({ after, acceptedBy }: ManyAsked, remaining: number): Progress {
  const done = remaining === 0;
  return { done, remaining, next: done || after === '' ? null : `${after}.${acceptedBy}` };
}

/** Gives half of the time of a request to other work, and ends it in time. */
class Pace {
  readonly #clock: Clock;
  readonly #until: number;
  #since = performance.now();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#until = clock.monotonic() + budgetMs;
  }

  /** Pauses for as long as the last part took; whether the request is late. */
  async isLate(): Promise<boolean> {
    if (this.#clock.monotonic() >= this.#until) return true;
    await pause(performance.now() - this.#since);
    this.#since = performance.now();
    return false;
  }
}

/** Throws `400` for a command without filters, which would be for all jobs. */
function requireFilter({ filters }: ManyCommand): void {
  if (Object.values(filters).every((value) => value === undefined)) {
    throw invalid('body', 'must name at least one filter, such as status');
  }
}

function askedOf({ clock }: Context, organizationId: string, command: ManyCommand): ManyAsked {
  const { filters, after: given } = command;
  // Without those that are accepted meanwhile, such as the retries that an earlier request made.
  const now = clock.now();
  if (given === undefined) return { organizationId, filters, after: '', acceptedBy: now };
  const [, after, moment] = nextPattern.exec(given) ?? [];
  if (after === undefined) throw invalid('after', 'must be next of an earlier answer');
  const acceptedBy = moment === undefined ? now : Math.min(now, Number(moment));
  return { organizationId, filters, after, acceptedBy };
}

async function cancelChunk(
  { database, clock }: Context,
  { settler, running }: JobsParts,
  ids: readonly string[],
  counts: { cancelled: number; stopping: number },
): Promise<void> {
  const { cancelled, active } = await database.write(async (tx) => {
    const ended = await settler.cancelUnclaimed(tx, ids);
    if (ended === ids.length) return { cancelled: ended, active: [] };
    const stopped = await requestCancellations(tx, { ids, now: clock.now() });
    const stoppedIds = stopped.map(({ id }) => id);
    await settler.cancelBelow(tx, stoppedIds);
    return { cancelled: ended, active: stopped };
  });
  counts.cancelled += cancelled;
  counts.stopping += active.length;
  for (const { id } of active) running.cancel(id);
}

async function retryOne(
  context: Context,
  parts: JobsParts,
  caller: Caller,
  job: JobRow,
  counts: { retried: number; refused: Record<string, number> },
): Promise<void> {
  try {
    const { isReplay } = await retryJob(context, parts, caller, job, {
      // Two requests at once make one retry.
      idempotency: { owner: `retries of ${job.organization_id}`, key: job.id, fingerprint: '' },
    });
    if (!isReplay) counts.retried += 1;
  } catch (error) {
    if (!(error instanceof PlatformError) || error.status >= 500) throw error;
    counts.refused[error.code] = (counts.refused[error.code] ?? 0) + 1;
  }
}
