/**
 * Settle: the one way out for an active job. One transaction records the end of an attempt: the job,
 * its conversation, the messages, the events, the counts. Only the attempt that still holds the lease
 * settles; a late one changes nothing and gets null. A job whose cancellation was requested ends as
 * cancelled, even when its last attempt completed.
 */
import type { Agents } from '../agents/agents.ts';
import type { Journals } from '../agents/journal.ts';
import { addMessages, endConversations, type NewMessage } from '../conversations/record.ts';
import { createBatch } from '../database/batch.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { JobStatus, MessageRole } from '../database/tables.ts';
import type { NewEvent } from '../events/events.ts';
import { appendEvents } from '../events/outbox.ts';
import type { Backoff } from '../kernel/backoff.ts';
import { type Clock, timestamp } from '../kernel/clock.ts';
import { PlatformError, type RunErrorCode } from '../kernel/errors.ts';
import { endOf } from '../kernel/set-back.ts';
import type { Memories } from '../memories/memories.ts';
import type { MemoryChanges } from '../memories/record.ts';
import type { Queue } from '../queue/queue.ts';
import { messageText } from './accept.ts';
import type { JobFeed } from './feed.ts';
import { insertJobEvents } from './job-events.store.ts';
import { type ClaimedJob, changeJobCounts, holdJobs, settleJobs } from './jobs.store.ts';
import { queueOf } from './queues.ts';
import type { EndedRun, ScheduledRuns } from './scheduled-runs.ts';
import {
  type AttemptOutcome,
  cancelledError,
  isFinal,
  nextState,
  type Transition,
  withoutRetry,
} from './states.ts';
import { endingEvent } from './status-events.ts';

/** Characters of the output that an event carries. */
const summaryMax = 200;

/** A message that a run added to its conversation. */
export interface RunMessage {
  readonly role: MessageRole;
  readonly content: string;
  readonly at: number;
}

/** The end of an attempt. */
export interface Settlement {
  readonly job: ClaimedJob;
  readonly outcome: AttemptOutcome;
  readonly messages: readonly RunMessage[];
  /** The run's changes to its agent's memories; recorded if this completes the job. */
  readonly memory?: MemoryChanges | undefined;
  /** Milliseconds that the run took, where this process has measured it. */
  readonly tookMs?: number;
  /** Whether it asked a model or called a skill, so that unfinished steps may be recorded. */
  readonly hasSteps?: boolean;
  /** The model's answer, if it is in the conversation already; null when there is none. */
  readonly answer?: string | null;
}

/** The job's new status; null when another attempt holds it and this one was ignored. */
export type Settle = (settlement: Settlement) => Promise<JobStatus | null>;

interface Decided extends Settlement {
  readonly transition: Transition;
}

export function createSettle(parts: {
  database: Database;
  queue: Queue;
  feed: JobFeed;
  clock: Clock;
  backoff: Backoff;
  writer: string;
  scheduled: ScheduledRuns;
  agents: Pick<Agents, 'lock'>;
  memories: Pick<Memories, 'keep'>;
  journals: Pick<Journals, 'endAbandonedSteps'>;
  /** Called for each settled attempt, after the commit. */
  observe(job: ClaimedJob, transition: Transition, tookMs: number): void;
}): Settle {
  const { database, queue, feed, clock, backoff, writer, scheduled, agents, memories } = parts;
  const { journals, observe } = parts;

  return createBatch(database, settleTogether, partOfWrite);

  async function settleTogether(
    tx: Transaction,
    settlements: readonly Settlement[],
  ): Promise<(JobStatus | null)[]> {
    const now = clock.now();
    await holdAgents(tx, settlements);
    const decided = await withoutUnwanted(
      tx,
      settlements.map((one) => ({
        ...one,
        transition: nextState(one.outcome, one.job, backoff, now),
      })),
    );
    const settled = await settleAll(tx, decided, now);
    const counted = settled.filter((one) => one !== null);
    // `holdAgents` has locked their agents before the jobs.
    if (counted.some(hasMemory)) await memories.keep(tx, counted.flatMap(memoryOf));
    // Before the messages of the ending: the steps under way are older.
    const thinking = counted.filter(hasSteps).sort(byJobId);
    await journals.endAbandonedSteps(tx, thinking.map(endedClaim));
    await record(tx, counted, now, writer);
    await scheduled.ended(
      tx,
      counted.filter(isOfSchedule).flatMap((one) => endedRun(one, now)),
      now,
    );
    tx.afterCommit(() => {
      for (const one of counted) publish(one, now);
    });
    return settled.map((one) => one?.transition.status ?? null);
  }

  /**
   * Locks the agents whose memories this may change, in the order of `memories.keep`, and before the
   * jobs: every transaction locks agents first, then jobs, then counts.
   */
  async function holdAgents(tx: Transaction, settlements: readonly Settlement[]): Promise<void> {
    const keeping = settlements.filter((one) => hasMemory(one) && one.outcome.kind === 'completed');
    const byKey = new Map(
      keeping.map(({ job }) => [`${job.organization_id}/${job.agent_id}`, job]),
    );
    for (const [, job] of [...byKey].sort(([a], [b]) => (a < b ? -1 : 1))) {
      try {
        await agents.lock(tx, job.organization_id, job.agent_id);
      } catch (error) {
        // A deleted agent has no memories.
        if (!(error instanceof PlatformError && error.code === 'not_found')) throw error;
      }
    }
  }

  /** A run of a deleted or disabled schedule is not tried again. */
  async function withoutUnwanted(tx: Transaction, decided: Decided[]): Promise<Decided[]> {
    const ids = decided.filter(isOfSchedule).filter(isQueued).map(idOf);
    if (ids.length === 0) return decided;
    // All of them, so that jobs are locked in one order.
    await holdJobs(tx, decided.map(idOf));
    const unwanted = await scheduled.unwanted(tx, ids);
    return decided.map((one) =>
      unwanted.has(one.job.id) ? { ...one, transition: withoutRetry(one.transition) } : one,
    );
  }

  function publish(one: Decided, now: number): void {
    const { job, transition } = one;
    observe(job, transition, durationOf(one, now));
    if (transition.status === 'queued') {
      const delayMs = Math.max(0, transition.runAt - now);
      queue.sendHints(queueOf(job.trigger_type), [{ id: job.id, generation: job.epoch, delayMs }]);
    }
    if (feed.hasListeners(job.id)) feed.publish(job.id, endingEvent(job, transition, now));
  }
}

const partOfWrite = ({ memory }: Settlement) => memory?.share ?? 0;

function hasMemory({ memory }: Settlement): boolean {
  return memory !== undefined;
}

/** The memory changes to record: none, unless the attempt completes the job. */
function memoryOf({ job, memory, transition }: Decided) {
  if (memory === undefined || transition.status !== 'completed') return [];
  const owning = { organizationId: job.organization_id, agentId: job.agent_id };
  return [{ ...owning, acceptedAt: job.created_at, ...memory }];
}

function isOfSchedule({ job }: { job: ClaimedJob }): boolean {
  return job.trigger_type === 'scheduled';
}

const endedClaim = ({ job, transition }: Decided) => ({
  job,
  isCancelled: transition.status === 'cancelled',
});
const idOf = ({ job }: Settlement) => job.id;

const isQueued = ({ transition }: Decided) => transition.status === 'queued';

const hasSteps = (settlement: Settlement) => settlement.hasSteps === true;

const byJobId = (a: Settlement, b: Settlement) => (a.job.id < b.job.id ? -1 : 1);

/** How long the attempt took in milliseconds; never negative, even if the clock was set back. */
function durationOf({ job, tookMs }: Decided, now: number): number {
  return job.started_at === null ? 0 : endOf(job.started_at, now, tookMs) - job.started_at;
}

/** The end of a run, for its schedule; empty for a run that will be tried again. */
function endedRun(one: Decided, now: number): EndedRun[] {
  const { job, transition } = one;
  if (transition.status === 'queued') return [];
  const error = transition.status === 'completed' ? null : transition.error;
  return [{ job, status: transition.status, error, durationMs: durationOf(one, now) }];
}

/** The i-th result is the recorded settlement of the i-th attempt, or null when it had lost its lease. */
async function settleAll(
  tx: Transaction,
  decided: readonly Decided[],
  now: number,
): Promise<(Decided | null)[]> {
  const rows = decided.map((one) =>
    settledRow(one, now, one.transition.status === 'cancelled' ? 1 : 0),
  );
  const settled = await settleJobs(tx, rows);
  const results: (Decided | null)[] = [];
  for (const [i, one] of decided.entries()) {
    if (settled[i]) results.push(one);
    else results.push(await settleCancelled(tx, one, now));
  }
  return results;
}

/** Settles as cancelled an attempt that could not be settled, if cancellation was requested; else null. */
async function settleCancelled(
  tx: Transaction,
  one: Decided,
  now: number,
): Promise<Decided | null> {
  if (one.transition.status === 'cancelled') return null;
  const transition = { status: 'cancelled', error: cancelledError } as const;
  const cancelled = { ...one, transition };
  const [isSettled] = await settleJobs(tx, [settledRow(cancelled, now, 1)]);
  return isSettled ? cancelled : null;
}

function settledRow({ job, transition, tookMs }: Decided, now: number, cancelling: 0 | 1) {
  const waits = transition.status === 'queued';
  const error = 'error' in transition ? transition.error : null;
  return {
    id: job.id,
    epoch: job.epoch,
    status: transition.status,
    output: transition.status === 'completed' ? transition.output : null,
    error: error === null ? null : JSON.stringify(error),
    finished_at: waits ? null : endOf(job.started_at, now, tookMs),
    run_at: waits ? transition.runAt : null,
    due_at: waits ? transition.runAt : null,
    refund: waits ? transition.refund : 0,
    deaths: waits ? transition.unattributedDeaths : 0,
    cancelling,
  };
}

async function record(
  tx: Transaction,
  decided: readonly Decided[],
  now: number,
  writer: string,
): Promise<void> {
  const ended = decided.filter(({ transition }) => isFinal(transition.status));
  await addMessages(
    tx,
    ended.flatMap((one) => messagesOf(one, now)),
  );
  await endConversations(
    tx,
    ended.map(({ job, transition }) => ({
      id: job.conversation_id,
      status: transition.status === 'completed' ? 'completed' : 'failed',
    })),
    now,
    writer,
  );
  await appendEvents(
    tx,
    ended.flatMap((one) => eventsOf(one, now)),
    now,
  );
  // A final state is read from the job's row; the end of an attempt that is tried again is not there.
  await insertJobEvents(
    tx,
    decided
      .filter(({ transition }) => transition.status === 'queued')
      .map(({ job, transition }) => {
        const { epoch, n, type, data } = endingEvent(job, transition, now);
        return {
          job_id: job.id,
          epoch,
          n,
          type,
          data: JSON.stringify({ ...data, started_at: timestamp(job.started_at ?? now) }),
          created_at: now,
        };
      }),
  );
  await changeJobCounts(
    tx,
    writer,
    decided.map(({ job, transition }) => ({ kind: job, from: 'active', to: transition.status })),
  );
}

/** The run's messages, and its output unless one of them is that output already. */
function messagesOf(
  { job, messages, transition, answer = null }: Decided,
  now: number,
): NewMessage[] {
  const said = messages.map((message) => ({
    ...message,
    conversation_id: job.conversation_id,
    job_id: job.id,
  }));
  if (transition.status !== 'completed' || tells(transition.output, answer)) return said;
  const output = { role: 'assistant' as const, content: messageText(transition.output), at: now };
  return [...said, { ...output, conversation_id: job.conversation_id, job_id: job.id }];
}

/** Whether an output is, or contains as a value, the model's answer that was recorded before. */
function tells(output: string, answer: string | null): boolean {
  if (answer === null) return false;
  const value: unknown = JSON.parse(output);
  if (value === null || typeof value !== 'object') return value === answer;
  return Object.values(value).includes(answer);
}

/** Failures that are about the agent rather than the run (specification: Events). */
const agentErrors: ReadonlySet<RunErrorCode> = new Set(['missing_credentials', 'budget_exceeded']);

function eventsOf(one: Decided, now: number): NewEvent[] {
  const { job, transition } = one;
  const envelope = { organizationId: job.organization_id, agentId: job.agent_id };
  const run = {
    job_id: job.id,
    skill_category: job.skill_category,
    skill_name: job.skill_name,
    skill_version: job.skill_version,
    conversation_id: job.conversation_id,
  };
  if (transition.status === 'completed') {
    return [
      {
        ...envelope,
        type: 'skill.completed',
        data: {
          ...run,
          duration_ms: durationOf(one, now),
          result_summary: messageText(transition.output).slice(0, summaryMax).toWellFormed(),
        },
      },
    ];
  }
  if (transition.status !== 'failed') return [];
  const events: NewEvent[] = [
    {
      ...envelope,
      type: 'skill.failed',
      data: { ...run, attempts: job.attempt, error: transition.error },
    },
  ];
  if (agentErrors.has(transition.error.code)) {
    const data = { ...transition.error, job_id: job.id };
    events.push({ ...envelope, type: 'agent.error', data });
  }
  return events;
}
