/** Jobs as clients read, await, cancel and repeat them (docs/decisions/jobs.md). */
import type { Agents } from '../agents/agents.ts';
import { stepsOfJob } from '../agents/steps.ts';
import type { Conversations } from '../conversations/conversations.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { Caller } from '../kernel/caller.ts';
import type { Clock } from '../kernel/clock.ts';
import { notFound, PlatformError } from '../kernel/errors.ts';
import { isId } from '../kernel/ids.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import type { Accept } from './accept.ts';
import type { JobFeed } from './feed.ts';
import { type JobFilters, listJobs, listTimedJobs } from './job-lists.store.ts';
import { jobSummary, jobView, timing } from './job-views.ts';
import { findJob, holdJobs, type JobRow, requestCancellation } from './jobs.store.ts';
import { retry } from './retry.ts';
import type { Settle } from './settle.ts';
import { isFinal, type JobError } from './states.ts';

export type { JobFilters } from './job-lists.store.ts';

export interface JobsDeps {
  readonly database: Database;
  readonly conversations: Conversations;
  readonly skills: SkillRegistry;
  readonly agents: Agents;
  readonly accept: Accept;
  readonly settle: Pick<Settle, 'cancelQueued'>;
  readonly feed: JobFeed;
  readonly clock: Clock;
  /** Tells the process that runs the job to stop it. */
  stopRun(jobId: string): void;
}

interface Paging {
  readonly limit: number;
  readonly offset: number;
}

export type Jobs = ReturnType<typeof createJobs>;

export function createJobs(deps: JobsDeps) {
  const { database } = deps;
  return {
    find: (organizationId: string, id: string) => find(deps, organizationId, id),
    get: (organizationId: string, id: string) => get(deps, organizationId, id),

    async list(organizationId: string, filters: JobFilters, page: Paging) {
      const { jobs, total } = await listJobs(database.read, organizationId, filters, page);
      return { jobs: jobs.map(jobSummary), total };
    },

    /** Like `list`, with how each of them went. */
    async listTimed(organizationId: string, filters: JobFilters, page: Paging) {
      const { jobs, total } = await listTimedJobs(database.read, organizationId, filters, page);
      return { jobs: jobs.map((row) => ({ ...jobSummary(row), ...timing(row) })), total };
    },

    /** What a job that thinks has done so far, in order. */
    steps: (jobId: string, page: Paging) => stepsOfJob(database, jobId, page),

    /** The job once it has ended, or null after `ms` milliseconds, or when `signal` aborts. */
    awaitEnd: (organizationId: string, id: string, ms: number, signal: AbortSignal) =>
      awaitEnd(deps, { organizationId, id, ms, signal }),

    /** Cancels: a queued job at once, an active one as soon as its run has stopped. */
    cancel: (organizationId: string, id: string) => cancel(deps, organizationId, id),

    cancelQueued: (tx: Transaction, ids: readonly string[], error?: JobError) =>
      cancelQueued(deps, tx, ids, error),

    /** Runs a failed or cancelled job's input again, as a new job. */
    retry: async (caller: Caller, id: string) =>
      retry(deps, caller, await find(deps, caller.organizationId, id)),
  };
}

/** The organization's job, or `404 not_found`. */
async function find({ database }: JobsDeps, organizationId: string, id: string): Promise<JobRow> {
  const row = isId(id) ? await findJob(database.read, organizationId, id) : undefined;
  if (row === undefined) throw notFound('Job');
  return row;
}

async function get(deps: JobsDeps, organizationId: string, id: string) {
  return viewOf(deps, await find(deps, organizationId, id));
}

async function viewOf({ conversations }: JobsDeps, row: JobRow) {
  return jobView(row, await conversations.tokensOfJob(row.conversation_id, row.id));
}

async function awaitEnd(
  deps: JobsDeps,
  job: { organizationId: string; id: string; ms: number; signal: AbortSignal },
) {
  const { organizationId, id, ms, signal } = job;
  let told = Promise.withResolvers<void>();
  let isOver = signal.aborted || ms <= 0;
  // Listening first, so that an end between the look and the wait is not missed.
  const subscription = deps.feed.subscribe(id, (event) => {
    const isEnd = event?.type === 'status' && isFinal(event.data['status'] as JobRow['status']);
    if (event === null || isEnd) told.resolve();
  });
  const end = () => {
    isOver = true;
    told.resolve();
  };
  const timer = setTimeout(end, ms);
  signal.addEventListener('abort', end, { once: true });
  try {
    await subscription.ready;
    for (;;) {
      const isLast = isOver;
      const row = await find(deps, organizationId, id);
      if (isFinal(row.status)) return await viewOf(deps, row);
      if (isLast) return null;
      await told.promise;
      told = Promise.withResolvers();
      if (isOver) told.resolve();
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    subscription.stop();
  }
}

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
  deps.stopRun(id);
  return get(deps, organizationId, id);
}

/** Ends a queued job, or marks an active one; false when it is neither any more. */
function cancelStored({ database, settle, clock }: JobsDeps, id: string): Promise<boolean> {
  return database.write(async (tx) => {
    if ((await settle.cancelQueued(tx, [id])) > 0) return true;
    return (await requestCancellation(tx, id, clock.now())) !== undefined;
  });
}

/**
 * Cancels the queued ones of the jobs in the caller's transaction. Active ones go on, but their
 * rows are locked, so that none is settled before the transaction ends.
 */
async function cancelQueued(
  { settle }: JobsDeps,
  tx: Transaction,
  ids: readonly string[],
  error?: JobError,
): Promise<void> {
  await holdJobs(tx, ids);
  await settle.cancelQueued(tx, ids, error);
}
