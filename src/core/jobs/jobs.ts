/** Jobs as clients read, await, cancel and repeat them (docs/decisions/jobs.md). */

import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { bind } from '../../kernel/bind.ts';
import type { Caller } from '../../kernel/caller.ts';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import type { Context } from '../context/context.ts';
import { type Conversations, noTokenSums } from '../conversations/conversations.ts';
import type { StepsAsked } from '../journal/step-queries.ts';
import { stepsOfJob } from '../journal/steps.ts';
import type { Accept, AcceptedJob } from './accept.ts';
import type { JobFeed } from './feed.ts';
import { type JobFilters, listJobs, listTimedJobs } from './job-lists.store.ts';
import { jobView, listedJob, timing } from './job-views.ts';
import { findJob, type JobRow, requestCancellation, type ShownJob } from './jobs.store.ts';
import { type RetryDeps, retryJob } from './retry.ts';
import type { Settle } from './settle.ts';
import { isFinal } from './states.ts';

export interface JobsDeps {
  readonly base: Context;
  readonly slices: RetryDeps['slices'] & { readonly conversations: Conversations };
  readonly verbs: {
    readonly accept: Accept;
    readonly settle: Pick<Settle, 'cancelUnclaimed' | 'cancelQueued' | 'cancelBelow'>;
    /** Tells the process that runs the job to stop it. */
    stopRun(jobId: string): void;
    /** Whether a run of the job is under way here, whose end is still to be told. */
    isRunning(jobId: string): boolean;
  };
  readonly feed: JobFeed;
}

export type Jobs = ReturnType<typeof createJobs>;

export function createJobs(deps: JobsDeps) {
  const verbs = { find, get, list, listTimed, steps, awaitEnd, awaitAccepted, cancel, retry };
  const { cancelUnclaimed, cancelQueued } = deps.verbs.settle;
  return { ...bind(deps, verbs), cancelUnclaimed, cancelQueued };
}

async function list(deps: JobsDeps, ...asked: ListAsked) {
  const { jobs, total } = await listJobs(deps.base.database.read, ...asked);
  return { jobs: jobs.map(listedJob), total };
}

/** Like `list`, with how each of them went. */
async function listTimed(deps: JobsDeps, ...asked: ListAsked) {
  const { jobs, total } = await listTimedJobs(deps.base.database.read, ...asked);
  return { jobs: jobs.map((row) => ({ ...listedJob(row), ...timing(row) })), total };
}

type ListAsked = [organizationId: string, filters: JobFilters, page: PageAsked];

/** What a job has done so far, in order. */
function steps({ base }: JobsDeps, jobId: string, page: StepsAsked) {
  return stepsOfJob(base.database, jobId, page);
}

/** Runs a failed or cancelled job's input again, as a new job. */
async function retry(deps: JobsDeps, caller: Caller, id: string) {
  const { base, slices, verbs } = deps;
  const job = await find(deps, caller.organizationId, id);
  return retryJob({ config: base.config, slices, accept: verbs.accept }, caller, job);
}

/** The organization's job, or `404 not_found`. */
async function find({ base }: JobsDeps, organizationId: string, id: string): Promise<JobRow> {
  const row = isId(id) ? await findJob(base.database.read, organizationId, id) : undefined;
  if (row === undefined) throw notFound('Job');
  return row;
}

async function get(deps: JobsDeps, organizationId: string, id: string) {
  return viewOf(deps, await find(deps, organizationId, id));
}

async function viewOf({ slices }: JobsDeps, row: JobRow) {
  return jobView(row, await slices.conversations.tokensOfJob(row.conversation_id, row.id));
}

/** The job once it has ended, or null after `ms` milliseconds, or when `signal` aborts. */
function awaitEnd(
  deps: JobsDeps,
  organizationId: string,
  id: string,
  ms: number,
  signal: AbortSignal,
) {
  return untilEnd(deps, { organization_id: organizationId, id }, { ms, signal, isRunning: false });
}

/** Like `awaitEnd`, for a job that the caller has just accepted: most of these are run here, and not read. */
function awaitAccepted(
  deps: JobsDeps,
  job: Pick<AcceptedJob, 'organization_id' | 'id'>,
  ms: number,
  signal: AbortSignal,
) {
  return untilEnd(deps, job, { ms, signal, isRunning: deps.verbs.isRunning(job.id) });
}

/** `isRunning` says that a run here is going to tell the end, so that the job need not be read before. */
async function untilEnd(
  deps: JobsDeps,
  { organization_id, id }: Pick<AcceptedJob, 'organization_id' | 'id'>,
  { ms, signal, isRunning }: { ms: number; signal: AbortSignal; isRunning: boolean },
) {
  let told = Promise.withResolvers<ShownJob | undefined>();
  let isOver = signal.aborted || ms <= 0;
  // Listening first, so that an end between the look and the wait is not missed.
  const subscription = deps.feed.subscribe(id, (event, ended) => {
    const isEnd = event?.type === 'status' && isFinal(event.data['status'] as JobRow['status']);
    if (event === null || isEnd) told.resolve(ended);
  });
  const end = () => {
    isOver = true;
    told.resolve(undefined);
  };
  const timer = setTimeout(end, ms);
  signal.addEventListener('abort', end, { once: true });
  try {
    await subscription.ready;
    for (let mayHaveEnded = isOver || !isRunning; ; mayHaveEnded = true) {
      const isLast = isOver;
      const row = mayHaveEnded ? await find(deps, organization_id, id) : undefined;
      if (row !== undefined && isFinal(row.status)) return await viewOf(deps, row);
      if (mayHaveEnded && isLast) return null;
      const ended = await told.promise;
      if (ended !== undefined) return jobView(ended, noTokenSums);
      told = Promise.withResolvers();
      if (isOver) told.resolve(undefined);
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    subscription.stop();
  }
}

/** Cancels: a queued job at once, an active one as soon as its run has stopped. */
async function cancel(deps: JobsDeps, organizationId: string, id: string) {
  for (;;) {
    const job = await find(deps, organizationId, id);
    if (job.status === 'cancelled') return viewOf(deps, job);
    if (isFinal(job.status)) {
      throw new PlatformError('job_not_cancellable', `The job has already ended: ${job.status}`);
    }
    // Its status may have changed since it was read; then it is read again.
    if (await cancelStored(deps, id)) break;
  }
  deps.verbs.stopRun(id);
  return get(deps, organizationId, id);
}

/** Ends a queued or waiting job, or marks an active one; false when it is neither any more. */
function cancelStored({ base, verbs: { settle } }: JobsDeps, id: string): Promise<boolean> {
  return base.database.write(async (tx) => {
    if ((await settle.cancelUnclaimed(tx, [id])) > 0) return true;
    if ((await requestCancellation(tx, { id, now: base.clock.now() })) === undefined) return false;
    await settle.cancelBelow(tx, id);
    return true;
  });
}
