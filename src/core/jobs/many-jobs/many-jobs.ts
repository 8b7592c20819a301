/**
 * Cancels or repeats all jobs that filters name, in small transactions with pauses in which other work is recorded. A
 * request ends after some seconds and says where it stopped; a repetition goes on, also after a crash: a cancelled job is
 * not found again, nor is one that was run again.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { RequestHits } from '../../../adapters/http/request-hits.ts';
import type { Caller } from '../../../kernel/caller.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { invalid, PlatformError } from '../../../kernel/errors.ts';
import type { Context } from '../../context/context.ts';
import { requestCancellations } from '../families.store.ts';
import { boundedTotalMax, type JobFilters } from '../job-lists.store.ts';
import type { JobRow } from '../jobs.store.ts';
import type { JobsParts } from '../jobs.ts';
import { retryJob } from '../retry.ts';
import { findManyJobs, type JobSelection, jobsOfIds } from './many-jobs.store.ts';

/** Jobs of one transaction that are cancelled, and jobs that are run again side by side. */
const cancelledMax = 50;
const retriedMax = 20;
/** `next`: the id of a job, and the moment by which jobs must have been accepted. */
const nextPattern = /^([0-9a-f-]{36})(?:\.(\d{1,15}))?$/;
/** Rows that one query reads to find them: one of SQLite holds up all other work of the process. */
const rowsMax = 500;
/** After so long a request does no more, and counts no further what is left. */
const workedMs = 5_000;
const countedMs = 3_000;

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
  /** Jobs that a next request finds, counted to 10,000, as far as there is time. */
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
  const counts = { cancelled: 0, stopping: 0 };
  const walk = new Walk(context, selectionOf(context, 'open', organizationId, command), command);
  const pace = new Pace(context.clock, workedMs);
  while (!command.isDryRun && !walk.isEnd && !(await pace.isLate())) {
    const ids = await walk.next(cancelledMax);
    if (ids.length > 0) await cancelChunk(context, parts, ids, counts);
  }
  return { ...counts, ...(await walk.progress()) };
}

/**
 * Repeats failed or cancelled jobs as the caller: how many, and how many were refused, by the code of the refusal. Each
 * counts as a hit; where the limit allows none more, a next request goes on.
 */
export async function retryMany(
  { context, ...parts }: Parts,
  caller: Caller,
  command: ManyCommand,
  hits: RequestHits,
): Promise<Progress & { retried: number; refused: Record<string, number> }> {
  const filters = { status: 'failed' as const, ...command.filters };
  const counts = { retried: 0, refused: {} as Record<string, number> };
  const { organizationId } = caller;
  const selection = selectionOf(context, 'retryable', organizationId, { ...command, filters });
  const walk = new Walk(context, selection, command);
  const pace = new Pace(context.clock, workedMs);
  let isAllowed = true;
  while (!command.isDryRun && isAllowed && !walk.isEnd && !(await pace.isLate())) {
    const ids = await walk.next(retriedMax);
    let allowed = 0;
    while (allowed < ids.length && (await hits.countNext())) allowed += 1;
    isAllowed = allowed === ids.length;
    if (!isAllowed) walk.giveBack(ids, allowed);
    const jobs = await jobsOfIds(context.database.read, ids.slice(0, allowed));
    await Promise.all(jobs.map((job) => retryOne(context, parts, caller, job, counts)));
  }
  return { ...counts, ...(await walk.progress()) };
}

/** The jobs that a command is for, in the order of their ids. */
class Walk {
  readonly #context: Context;
  readonly #selection: JobSelection;
  /** The job behind which a next request goes on, by id. */
  #after: string;
  /** What that was before the last call of `next`. */
  #before = '';
  /** The jobs that were found behind it, and where the next query begins. */
  #found: string[] = [];
  #readTo: string | null;

  constructor(context: Context, selection: JobSelection, { filters, after }: ManyCommand) {
    // Without filters it would be for all jobs.
    if (Object.values(filters).every((value) => value === undefined)) {
      throw invalid('body', 'must name at least one filter, such as status');
    }
    this.#context = context;
    this.#selection = selection;
    this.#after = after === undefined ? '' : (nextPattern.exec(after)?.[1] ?? '');
    this.#readTo = this.#after;
  }

  /** Whether no such job is left. */
  get isEnd(): boolean {
    return this.#readTo === null && this.#found.length === 0;
  }

  /** The next of them, as far as one query finds any: none of many rows may be meant. */
  async next(max: number): Promise<readonly string[]> {
    if (this.#found.length === 0) await this.#read();
    const ids = this.#found.splice(0, max);
    this.#before = this.#after;
    this.#after = ids.at(-1) ?? this.#readTo ?? this.#after;
    return ids;
  }

  /** Of those that `next` has returned last only the first `done` are done. */
  giveBack(ids: readonly string[], done: number): void {
    this.#found.unshift(...ids.slice(done));
    this.#after = ids[done - 1] ?? this.#before;
  }

  /** What is left for a next request. */
  async progress(): Promise<Progress> {
    const pace = new Pace(this.#context.clock, countedMs);
    let remaining = this.#found.length;
    while (this.#readTo !== null && remaining < boundedTotalMax && !(await pace.isLate())) {
      this.#found = [];
      await this.#read();
      remaining += this.#found.length;
    }
    const done = remaining === 0 && this.#readTo === null;
    const next = done || this.#after === '' ? null : `${this.#after}.${this.#selection.acceptedBy}`;
    return { done, remaining: Math.min(remaining, boundedTotalMax), next };
  }

  async #read(): Promise<void> {
    if (this.#readTo === null) return;
    const { read } = this.#context.database;
    const { ids, next } = await findManyJobs(read, this.#selection, this.#readTo, rowsMax);
    this.#found.push(...ids);
    this.#readTo = next;
  }
}

/** Gives half of the time of a request to other work, and ends it after its budget. */
class Pace {
  readonly #clock: Clock;
  readonly #until: number;
  #since = performance.now();

  constructor(clock: Clock, budgetMs: number) {
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

function selectionOf(
  { clock }: Context,
  kind: JobSelection['kind'],
  organizationId: string,
  { filters, after: given }: ManyCommand,
): JobSelection {
  // Without those that are accepted meanwhile, such as the retries that an earlier request made.
  const now = clock.now();
  if (given === undefined) return { kind, organizationId, filters, acceptedBy: now };
  const [, after, moment] = nextPattern.exec(given) ?? [];
  if (after === undefined) throw invalid('after', 'must be next of an earlier answer');
  const acceptedBy = moment === undefined ? now : Math.min(now, Number(moment));
  return { kind, organizationId, filters, acceptedBy };
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
