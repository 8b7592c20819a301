/** Jobs as clients read, await, cancel and repeat them (docs/decisions/jobs.md). */
import type { Agents } from '../agents/agents.ts';
import { stepsOfJob } from '../agents/steps.ts';
import type { Conversations, TokenStats } from '../conversations/conversations.ts';
import { endConversations } from '../conversations/record.ts';
import type { Database, Transaction } from '../database/database.ts';
import { type Caller, requireScopes } from '../kernel/caller.ts';
import { type Clock, timestamp, timestampOrNull } from '../kernel/clock.ts';
import { notFound, PlatformError } from '../kernel/errors.ts';
import { isId } from '../kernel/ids.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import type { Accept, AcceptedJob } from './accept.ts';
import { agentPaused, conversationActive, refuseInvalid } from './execute.ts';
import type { JobFeed } from './feed.ts';
import {
  type JobFilters,
  type ListedJobRow,
  listJobs,
  listTimedJobs,
  type TimedJob,
} from './job-lists.store.ts';
import {
  cancelQueuedJobs,
  changeJobCounts,
  findJob,
  holdJobs,
  type JobRow,
  requestCancellation,
} from './jobs.store.ts';
import { queueOf } from './queues.ts';
import type { ScheduledRuns } from './scheduled-runs.ts';
import { cancelledError, isFinal, type JobError } from './states.ts';
import { endingEvent } from './status-events.ts';

export type { JobFilters } from './job-lists.store.ts';

/** The organization and the skill of a cancelled job. */
export type CancelledJob = Pick<
  JobRow,
  'organization_id' | 'skill_category' | 'skill_name' | 'skill_version'
>;

export type Jobs = ReturnType<typeof createJobs>;

export function createJobs(parts: {
  database: Database;
  conversations: Conversations;
  skills: SkillRegistry;
  agents: Agents;
  accept: Accept;
  feed: JobFeed;
  clock: Clock;
  writer: string;
  /** Tells the process that runs the job to stop it. */
  stopRun(jobId: string): void;
  scheduled: ScheduledRuns;
  /** Told of jobs that were cancelled while they waited, after the commit. */
  observeCancelled?(jobs: readonly CancelledJob[]): void;
}) {
  const { database, conversations, skills, agents, accept, feed, clock, writer, stopRun } = parts;
  const { scheduled, observeCancelled } = parts;

  /** The organization's job, or `404 not_found`. */
  async function find(organizationId: string, id: string): Promise<JobRow> {
    const row = isId(id) ? await findJob(database.read, organizationId, id) : undefined;
    if (row === undefined) throw notFound('Job');
    return row;
  }

  async function viewOf(row: JobRow) {
    return jobView(row, await conversations.tokensOfJob(row.conversation_id, row.id));
  }

  /** Ends a queued job, or marks an active one; false when it is neither any more. */
  function cancelStored(job: JobRow, now: number): Promise<boolean> {
    return database.write(async (tx) => {
      if ((await cancelQueued(tx, [job.id], now)) > 0) return true;
      return (await requestCancellation(tx, job.id, now)) !== undefined;
    });
  }

  /** Cancels the queued ones of the jobs; returns how many. */
  async function cancelQueued(
    tx: Transaction,
    ids: readonly string[],
    now: number,
    error: JobError = cancelledError,
  ) {
    const cancelled = await cancelQueuedJobs(tx, ids, JSON.stringify(error), now);
    await endConversations(
      tx,
      cancelled.map((job) => ({ id: job.conversation_id, status: 'failed' })),
      now,
      writer,
    );
    await changeJobCounts(
      tx,
      writer,
      cancelled.map((kind) => ({ kind, from: 'queued', to: 'cancelled' })),
    );
    const runs = cancelled.filter((job) => job.trigger_type === 'scheduled');
    await scheduled.ended(
      tx,
      runs.map((job) => ({ job, status: 'cancelled', error, durationMs: 0 })),
      now,
    );
    tx.afterCommit(() => {
      for (const job of cancelled) {
        const transition = { status: 'cancelled' as const, error };
        if (feed.hasListeners(job.id)) feed.publish(job.id, endingEvent(job, transition, now));
      }
      if (cancelled.length > 0) observeCancelled?.(cancelled);
    });
    return cancelled.length;
  }

  return {
    find,

    async list(
      organizationId: string,
      filters: JobFilters,
      page: { limit: number; offset: number },
    ) {
      const { jobs, total } = await listJobs(database.read, organizationId, filters, page);
      return { jobs: jobs.map(jobSummary), total };
    },

    /** As `list`, with how each of them went. */
    async listTimed(
      organizationId: string,
      filters: JobFilters,
      page: { limit: number; offset: number },
    ) {
      const { jobs, total } = await listTimedJobs(database.read, organizationId, filters, page);
      return { jobs: jobs.map((row) => ({ ...jobSummary(row), ...timing(row) })), total };
    },

    async get(organizationId: string, id: string) {
      return viewOf(await find(organizationId, id));
    },

    /** What a job that thinks has done so far, in order. */
    steps: (jobId: string, page: { limit: number; offset: number }) =>
      stepsOfJob(database, jobId, page),

    /** The job once it has ended, or null after `ms` milliseconds, or when `signal` aborts. */
    async awaitEnd(organizationId: string, id: string, ms: number, signal: AbortSignal) {
      let told = Promise.withResolvers<void>();
      let isOver = signal.aborted || ms <= 0;
      // Listening first, so that an end between the look and the wait is not missed.
      const subscription = feed.subscribe(id, (event) => {
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
          const job = await find(organizationId, id);
          if (isFinal(job.status)) return await viewOf(job);
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
    },

    /** Cancels: a queued job at once, an active one as soon as its run has stopped. */
    async cancel(organizationId: string, id: string) {
      for (;;) {
        const job = await find(organizationId, id);
        if (job.status === 'cancelled') return viewOf(job);
        if (isFinal(job.status)) {
          throw new PlatformError(
            'job_not_cancellable',
            `The job has already ended: ${job.status}`,
          );
        }
        // Its status may have changed since it was read; then it is read again.
        if (await cancelStored(job, clock.now())) break;
      }
      stopRun(id);
      return viewOf(await find(organizationId, id));
    },

    /**
     * Cancels the queued ones of the jobs in the caller's transaction. Active ones go on, but their
     * rows are locked, so that none is settled before the transaction ends.
     */
    async cancelWaiting(
      tx: Transaction,
      ids: readonly string[],
      error: JobError = cancelledError,
    ): Promise<void> {
      await holdJobs(tx, ids);
      await cancelQueued(tx, ids, clock.now(), error);
    },

    /** Runs a failed or cancelled job's input again, as a new job. */
    async retry(caller: Caller, id: string): Promise<AcceptedJob> {
      const job = await find(caller.organizationId, id);
      const skill = skills.active(job.skill_category, job.skill_version, job.skill_name);
      const agent = await agents.statusOf(caller.organizationId, job.agent_id);
      requireScopes(caller.scopes, skill.requiredScopes);
      if (job.status !== 'failed' && job.status !== 'cancelled') {
        throw new PlatformError('job_not_retryable', `The job is ${job.status}`);
      }
      // The version may have been changed in place since.
      refuseInvalid(skill, JSON.parse(job.input));
      if (agent === 'paused') throw agentPaused(job.agent_id);
      const conversation = await conversations.find(caller.organizationId, job.conversation_id);
      const isContinued = conversation.created_at < job.created_at;
      // An agent does not continue a conversation that a deleted agent of the same id began.
      if (isContinued) {
        await agents.findSince(caller.organizationId, job.agent_id, conversation.created_at);
      }
      const acceptance = await accept({
        organizationId: caller.organizationId,
        apiKeyId: caller.keyId,
        agentId: job.agent_id,
        userId: job.user_id,
        triggerType: 'api',
        skill,
        maxAttempts: skill.maxAttempts,
        input: job.input,
        retryOf: job.id,
        // A continued conversation is continued again; a job that began its own begins a new one.
        ...(isContinued ? { conversationId: conversation.id } : {}),
      });
      if (acceptance.kind === 'conversation_active') throw conversationActive(conversation.id);
      return (acceptance as { job: AcceptedJob }).job;
    },
  };
}

/** A job as lists and `202` responses contain it. */
export function jobSummary(
  row: Omit<AcceptedJob, 'organization_id'> & { status: JobRow['status'] },
) {
  return {
    job_id: row.id,
    status: row.status,
    conversation_id: row.conversation_id,
    agent_id: row.agent_id,
    skill_category: row.skill_category,
    skill_name: row.skill_name,
    skill_version: row.skill_version,
    created_at: timestamp(row.created_at),
  };
}

/** How a job went, or has gone so far. */
function timing({ started_at, finished_at, ...row }: Omit<TimedJob, keyof ListedJobRow>) {
  return {
    trigger_type: row.trigger_type,
    user_id: row.user_id,
    attempt: row.attempt,
    max_attempts: row.max_attempts,
    run_at: timestamp(row.run_at),
    started_at: timestampOrNull(started_at),
    finished_at: timestampOrNull(finished_at),
    duration_ms:
      started_at === null || finished_at === null ? null : Math.max(0, finished_at - started_at),
    error: row.error === null ? null : (JSON.parse(row.error) as JobError),
  };
}

function jobView(row: JobRow, tokens: TokenStats) {
  return {
    ...jobSummary(row),
    input: JSON.parse(row.input) as unknown,
    output: row.output === null ? null : (JSON.parse(row.output) as unknown),
    ...timing(row),
    queue: queueOf(row.trigger_type),
    retry_of: row.retry_of,
    progress:
      row.progress === null
        ? null
        : (JSON.parse(row.progress) as { fraction: number; note: string | null }),
    token_stats: tokens,
  };
}
