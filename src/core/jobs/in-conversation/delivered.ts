/**
 * Messages that steer a run: a job that was accepted to do so is held behind the job that works, and the run of that one takes
 * its message between two turns of its model. One transaction takes it from what waits, records it in the conversation, and has
 * its job wait for the end of the run; so the message is delivered once, also when the process dies before or after. The job ends
 * with the other one, and as it does. Where no run has taken it when the other job ends, it is the next one of its conversation.
 */
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import { canonicalJson } from '../../../kernel/text.ts';
import type { Context } from '../../context/context.ts';
import { insertJobEvents } from '../job-events.store.ts';
import { type ClaimedJob, jobCounts } from '../jobs.store.ts';
import type { Settled } from '../settle-effects.ts';
import { isFinal, type Transition } from '../states.ts';
import { deliveredEvent } from '../status-events.ts';
import { steeredBytesMax } from './conversation-gates.ts';
import { behindOthersOf, deliveredName } from './conversation-jobs.store.ts';
import {
  deliver,
  endWaiting,
  listDelivered,
  listSteering,
  type SteeringJob,
  sameColumns,
} from './delivered.store.ts';

/** A message that a run takes. */
export interface SteeringMessage {
  readonly jobId: string;
  /** The text for the model. */
  readonly text: string;
  /** The input of its job, as JSON text. */
  readonly input: string;
}

/**
 * The messages that wait for a run and that it may take, in the order of acceptance. It takes those alone that its own request could
 * have had: of the same key, for the same user, to the same skill with the same settings.
 */
export async function steeringMessages(
  db: Handle,
  job: ClaimedJob,
  taskField: string,
  now: number,
): Promise<SteeringMessage[]> {
  const gate = behindOthersOf(job.conversation_id, 'steer');
  const messages: SteeringMessage[] = [];
  let bytes = 0;
  for (const one of await listSteering(db, { gate, now })) {
    const text = textFor(job, one, taskField);
    if (text === null || Buffer.byteLength(text) > steeredBytesMax) continue;
    bytes += Buffer.byteLength(text);
    if (bytes > steeredBytesMax) break;
    messages.push({ jobId: one.id, text, input: one.input });
  }
  return messages;
}

/** The task of a job that may steer another one; null for one that may not. */
function textFor(running: ClaimedJob, job: SteeringJob, taskField: string): string | null {
  if (sameColumns.some((column) => running[column] !== job[column])) return null;
  const { [taskField]: text, ...others } = JSON.parse(job.input) as Record<string, unknown>;
  const own = JSON.parse(running.input) as Record<string, unknown>;
  const isSame = Object.entries(others).every(
    ([name, value]) => canonicalJson(value) === canonicalJson(own[name] ?? null),
  );
  return isSame && typeof text === 'string' ? text : null;
}

/** Takes the messages that still wait, in the transaction that records them; which ones it took. */
export async function takeMessages(
  { observers, writer }: Context,
  tx: Transaction,
  { id: to, conversation_id }: Pick<ClaimedJob, 'id' | 'conversation_id'>,
  messages: readonly SteeringMessage[],
  now: number,
): Promise<SteeringMessage[]> {
  const jobs = await deliver(tx, {
    ids: messages.map(({ jobId }) => jobId),
    gate: behindOthersOf(conversation_id, 'steer'),
    to,
    held_by: deliveredName(to),
    now,
  });
  await insertJobEvents(
    tx,
    jobs.map((job) => {
      const { epoch, n, type, data } = deliveredEvent(job, to);
      const began = { ...data, started_at: 'at' in data ? data.at : undefined };
      return { job_id: job.id, epoch, n, type, data: JSON.stringify(began), created_at: now };
    }),
  );
  await jobCounts.change(
    tx,
    writer,
    jobs.map((kind) => ({ kind, from: 'queued', to: 'waiting' })),
  );
  tx.afterCommit(() => {
    for (const job of jobs) observers.delivered(job, to);
  });
  const taken = new Set(jobs.map((job) => job.id));
  return messages.filter(({ jobId }) => taken.has(jobId));
}

/** Ends the jobs whose messages runs have taken that end in this transaction. The caller records the effects. */
export async function endDelivered(
  tx: Transaction,
  ended: readonly Settled[],
  now: number,
): Promise<Settled[]> {
  const byId = new Map(ended.map((one) => [one.job.id, one]));
  if (byId.size === 0) return [];
  const delivered: Settled[] = [];
  const waiting = await listDelivered(tx, { ids: [...byId.keys()] });
  for (const [to, jobs] of Map.groupBy(waiting, (job) => job.delivered_to)) {
    const transition = byId.get(to ?? '')?.transition;
    if (transition === undefined || !isEnd(transition)) continue;
    const ids = jobs.map(({ id }) => id);
    delivered.push(...(await endAs(tx, ids, transition, now)));
  }
  return delivered;
}

/** An end of a job. */
export type End = Extract<Transition, { status: 'completed' | 'failed' | 'cancelled' }>;

const isEnd = (transition: Transition): transition is End => isFinal(transition.status);

/** Ends those of the jobs that still wait for a run that has their message. The caller records the effects. */
export async function endAs(
  tx: Transaction,
  ids: readonly string[],
  transition: End,
  now: number,
): Promise<Settled[]> {
  const jobs = await endWaiting(tx, {
    ids,
    status: transition.status,
    output: 'output' in transition ? transition.output : null,
    error: 'error' in transition ? JSON.stringify(transition.error) : null,
    now,
  });
  return jobs.map((job) => ({
    job,
    from: 'waiting',
    transition,
    durationMs: Math.max(0, now - (job.started_at ?? now)),
    messages: [],
    isDelivered: true,
  }));
}
