/**
 * The effects of the end of a claim, or of a cancellation before one, outside the job's row: messages, the
 * conversation, events, the job's stream, counts, its schedule, the metrics. All ends come through here,
 * in the transaction that makes them true, so none misses an effect that is added here.
 */

import type { Transaction } from '../../adapters/database/database.ts';
import type { MessageRole } from '../../adapters/database/tables.ts';
import { timestamp } from '../../kernel/clock.ts';
import type { RunErrorCode } from '../../kernel/errors.ts';
import type { Context } from '../context/context.ts';
import type { ObservedEnd } from '../context/run-observer.ts';
import {
  addMessages,
  endConversations,
  formMemoriesLater,
  type NewMessage,
} from '../conversations/record.ts';
import { envelopeOf, type NewEvent, runData } from '../events/events.ts';
import { appendEventsOf } from '../events/outbox.ts';
import { UnconfirmedWrites } from '../leases/unconfirmed-writes.ts';
import { type EndedRun, endScheduledRuns } from '../scheduled-runs/scheduled-runs.ts';
import { endsOfChildren, isChild } from './families.ts';
import { endDelivered } from './in-conversation/delivered.ts';
import { insertJobEvents } from './job-events.store.ts';
import { type ClaimedJob, type JobCountChanges, jobCounts } from './jobs.store.ts';
import { messageText } from './message-text.ts';
import { sendHint } from './queues.ts';
import { type EndedJob, listClaimStates } from './settle.store.ts';
import type { Settler } from './settle.ts';
import { isFinal, type Transition } from './states.ts';
import { endingEvent } from './status-events.ts';

/** A waiting job that is due within this time has a hint. */
const soonMs = 5_000;
/** Characters of the output that an event carries. */
const summaryMax = 200;

/** A message that a run added to its conversation. */
export interface RunMessage {
  readonly role: MessageRole;
  readonly content: string;
  readonly at: number;
}

/** A job whose claim has ended, or that was cancelled while it was queued or waiting. */
export interface Settled extends ObservedEnd {
  readonly job: EndedJob;
  /** Whether it was cancelled because its parent has ended, so that nothing waits for it. */
  readonly isWithParent?: boolean;
  /** Whether it ends with the job whose run has taken its message; what was said is recorded of that one. */
  readonly isDelivered?: boolean;
  readonly messages: readonly RunMessage[];
  /** The model's answer, if it is in the conversation already; null when there is none. */
  readonly answer?: string | null;
  /** The field of the output that holds the skill's answer; null when the skill names none. */
  readonly answerField?: string | null;
  /** Milliseconds that the run took, where this process has measured it. */
  readonly tookMs?: number;
  /** The job as it was claimed, where its run has changed nothing of it: it made no report and no request. */
  readonly unchanged?: ClaimedJob | undefined;
}

/** An end that may be on record; `id` is its job's. */
interface RecordedEnd {
  readonly id: string;
  readonly settled: Settled;
  readonly now: number;
}

export type UnconfirmedEnds = UnconfirmedWrites<RecordedEnd>;

/** Records the effects of settled jobs, and further changes of the counts; publishes them after the commit. */
export async function recordEffects(
  settler: Settler,
  tx: Transaction,
  claims: readonly Settled[],
  now: number,
  changes: JobCountChanges = [],
): Promise<void> {
  const { context, parts, unconfirmed } = settler;
  const { writer } = context;
  const ends = claims.filter(({ transition }) => isFinal(transition.status));
  const own = ends.filter(({ isDelivered }) => !isDelivered);
  // Jobs are locked before all that follows.
  const delivered = await endDelivered(tx, own.filter(mayBeSteered(settler)), now);
  const settled = delivered.length === 0 ? claims : [...claims, ...delivered];
  const ended = delivered.length === 0 ? ends : [...ends, ...delivered];
  // First, because it changes steps and jobs, which are locked before counts.
  if (ended.some(isChild)) await parts.waitEnds.endWaits(tx, endsOfChildren(ended), now);
  // Gates are locked after jobs, and before conversations and counts.
  if (settled.some(isGated)) {
    await parts.inConversation.holdNext(tx, ended.map(jobOf));
    await parts.places.release(tx, settled.map(jobOf));
  }
  await addMessages(
    tx,
    own.flatMap((one) => messagesOf(one, now)),
  );
  // After the messages of the ended jobs: those of the next ones are later.
  const goingOn = await parts.inConversation.follow(tx, own.map(jobOf), now);
  const closed = own.filter(({ job }) => !goingOn.has(job.conversation_id));
  await endConversations(
    tx,
    closed.map(({ job, transition }) => ({
      id: job.conversation_id,
      status: transition.status === 'completed' ? 'completed' : 'failed',
    })),
    now,
    writer,
  );
  await formMemories(settler, tx, closed, now);
  await appendEventsOf(tx, ended, { agentOf: ({ job }) => job, eventsOf }, now);
  await insertJobEvents(
    tx,
    settled.filter(isUnfinished).map((one) => claimEnd(one, now)),
  );
  await jobCounts.change(tx, writer, [
    ...changes,
    ...settled.map(({ job, from, transition }) => ({ kind: job, from, to: transition.status })),
  ]);
  await endScheduledRuns(tx, ended.filter(isOfSchedule).flatMap(endedRun), now);
  // This transaction has ended the claims, so no earlier one has.
  unconfirmed.forget(settled.map(({ job }) => job.id));
  tx.ifUncertain(() =>
    unconfirmed.add(settled.map((one) => ({ id: one.job.id, settled: one, now }))),
  );
  tx.afterCommit(() => {
    for (const one of settled) publish(context, one, now);
  });
}

/** Notes when memories are formed of dialogues that have ended, in which a client takes part. */
async function formMemories(
  settler: Settler,
  tx: Transaction,
  closed: readonly Settled[],
  now: number,
): Promise<void> {
  const dialogues = closed.filter((one) => !isChild(one)).filter(mayBeSteered(settler));
  if (dialogues.length === 0) return;
  const ids = dialogues.map(({ job }) => job.conversation_id);
  await formMemoriesLater(tx, ids, now);
}

/** Publishes ends whose commit was not confirmed, once the database shows that they are on record. */
export function publishUnconfirmed(context: Context): UnconfirmedEnds {
  const { config, database, clock, log } = context;
  return new UnconfirmedWrites(
    {
      async takeCommitted(ends) {
        const jobs = await listClaimStates(database.read, { ids: ends.map(({ id }) => id) });
        const states = new Map(jobs.map((job) => [job.id, job]));
        return ends.filter(({ id, settled: { job, transition } }) => {
          const state = states.get(id);
          return state?.epoch === job.epoch && state.status === transition.status;
        });
      },
      settle: ({ settled, now }) => publish(context, settled, now),
      onError: (err) => log.error({ err }, 'ends of jobs without a confirmation are not published'),
    },
    clock,
    config.jobLeaseMs,
  );
}

/** Reports the end to the observers, and sends the hint of a job that goes on. */
function publish({ queue, observers }: Context, settled: Settled, now: number): void {
  const { job, transition } = settled;
  observers.ended(settled, now);
  if (transition.status === 'queued') {
    sendHint(queue, job, job.epoch, Math.max(0, transition.runAt - now));
  }
  if (transition.status === 'waiting') {
    const delayMs = Math.max(0, transition.dueAt - now);
    // The sweep finds the others: a hint takes memory.
    if (delayMs <= soonMs) sendHint(queue, job, job.epoch, delayMs);
  }
}

export function isOfSchedule({ job }: { readonly job: EndedJob }): boolean {
  return job.trigger_type === 'scheduled';
}

export function isQueuedAgain({ transition }: { readonly transition: Transition }): boolean {
  return transition.status === 'queued';
}

/** Whether runs of the job may have taken messages of others. */
const mayBeSteered =
  ({ parts }: Settler) =>
  ({ job }: Settled) =>
    parts.inConversation.mayBeFollowed(job);

const jobOf = ({ job }: Settled) => job;
const isGated = ({ job }: Settled) => job.gated === 1;

function isUnfinished({ transition }: { readonly transition: Transition }): boolean {
  return !isFinal(transition.status);
}

/** The end of a run, for its schedule; empty for a run that will be tried again, or goes on. */
function endedRun({ job, transition, durationMs }: Settled): EndedRun[] {
  if (transition.status === 'queued' || transition.status === 'waiting') return [];
  const error = transition.status === 'completed' ? null : transition.error;
  return [{ job, status: transition.status, error, durationMs }];
}

/** The end of a claim that does not end its job. A final state is read from the job's row instead. */
function claimEnd({ job, transition }: Settled, now: number) {
  const { epoch, n, type, data } = endingEvent(job, transition, now);
  const began = {
    started_at: timestamp(job.started_at ?? now),
    ...(job.resumed_at === null ? {} : { resumed_at: timestamp(job.resumed_at) }),
  };
  return {
    job_id: job.id,
    epoch,
    n,
    type,
    data: JSON.stringify({ ...data, ...began }),
    created_at: now,
  };
}

/** The run's messages, and its output unless one of them is that output already. */
function messagesOf(
  { job, messages, transition, answer = null, answerField = null }: Settled,
  now: number,
): NewMessage[] {
  const { id: job_id, conversation_id } = job;
  const added: NewMessage[] = messages.map((one) => ({ ...one, conversation_id, job_id }));
  if (transition.status === 'completed' && !repeatsAnswer(transition.output, answer, answerField)) {
    const content = messageText(transition.output);
    added.push({ conversation_id, job_id, role: 'assistant', content, at: now });
  }
  return added;
}

/**
 * Whether an output repeats the model's answer, which is in the conversation already: the output is the answer,
 * or has it in the skill's answer field. Of a skill that names no answer field, any field counts.
 */
function repeatsAnswer(output: string, answer: string | null, field: string | null): boolean {
  if (answer === null) return false;
  const value: unknown = JSON.parse(output);
  if (value === null || typeof value !== 'object') return value === answer;
  if (field !== null) return (value as Record<string, unknown>)[field] === answer;
  return Object.values(value).includes(answer);
}

/** Failures that are about the agent rather than the run (specification: Events). */
const agentErrors: ReadonlySet<RunErrorCode> = new Set(['missing_credentials', 'budget_exceeded']);

function eventsOf({ job, transition, durationMs }: Settled): NewEvent[] {
  const envelope = envelopeOf(job);
  const run = runData(job);
  if (transition.status === 'completed') {
    return [
      {
        ...envelope,
        type: 'skill.completed',
        data: {
          ...run,
          duration_ms: durationMs,
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
