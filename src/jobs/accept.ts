/**
 * Accept: the one way in for work. One transaction records the job, its conversation, the user's
 * message and the event; the caller is answered and the hint is sent only after its commit. Where a
 * worker of this process has a free slot, the same transaction claims the job for it, which saves
 * the hint and a second write. It checks no permission, input or agent: its callers have done that.
 */
import {
  addMessages,
  beginConversations,
  continueConversation,
  conversationsHeld,
} from '../conversations/record.ts';
import { createBatch } from '../database/batch.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { TriggerType } from '../database/tables.ts';
import { appendEvents } from '../events/outbox.ts';
import type { Clock } from '../kernel/clock.ts';
import { notFound } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { QueueName } from '../kernel/queues.ts';
import type { Queue } from '../queue/queue.ts';
import { type Candidate, type Holder, type IdempotencyKey, takeKeys } from './idempotency.ts';
import {
  type ClaimedJob,
  changeJobCounts,
  insertJobs,
  type JobRow,
  type NewJob,
} from './jobs.store.ts';
import { queueOf } from './queues.ts';

/** Work to be accepted; its caller has checked it. */
export interface WorkRequest {
  readonly organizationId: string;
  readonly apiKeyId: string;
  readonly agentId: string;
  readonly userId: string;
  readonly triggerType: TriggerType;
  readonly skill: { category: string; name: string; version: string };
  readonly maxAttempts: number;
  /** The skill's input as JSON text. */
  readonly input: string;
  /** The job that this one repeats. */
  readonly retryOf: string | null;
  /** The conversation of the same agent that it continues; without it the job begins a new one. */
  readonly conversationId?: string;
  readonly idempotency?: IdempotencyKey;
}

/** A job as it was when it was accepted. */
export type AcceptedJob = Pick<
  JobRow,
  | 'id'
  | 'organization_id'
  | 'conversation_id'
  | 'agent_id'
  | 'skill_category'
  | 'skill_name'
  | 'skill_version'
  | 'created_at'
>;

export type Acceptance =
  | { readonly kind: 'accepted' | 'replayed'; readonly job: AcceptedJob }
  /** The Idempotency-Key was used for a different request. */
  | { readonly kind: 'key_reused' }
  /** Another run of the conversation that it continues has not ended. */
  | { readonly kind: 'conversation_active' };

export interface Accept {
  (request: WorkRequest): Promise<Acceptance>;
  /** The same in the caller's transaction, for rows that must be committed together with the job. */
  within(tx: Transaction, requests: readonly WorkRequest[]): Promise<Acceptance[]>;
}

/** The worker of the same process. */
export interface LocalWorker {
  /** How many more jobs of a queue it can begin at once. */
  freeSlots(queue: QueueName): number;
  /** Runs a job that was claimed for it. */
  begin(job: ClaimedJob): void;
  readonly leaseMs: number;
}

export function createAccept(parts: {
  database: Database;
  queue: Queue;
  clock: Clock;
  writer: string;
  /** Left out in a process without the worker role. */
  worker?: LocalWorker;
  /** Called with the accepted jobs, after the commit. */
  observe?(jobs: readonly NewJob[]): void;
}): Accept {
  const { database, queue, clock, writer, worker, observe } = parts;

  async function within(tx: Transaction, requests: readonly WorkRequest[]): Promise<Acceptance[]> {
    const now = clock.now();
    const acceptances: Acceptance[] = [];
    const jobs: NewJob[] = [];
    const keyed: Candidate<NewJob>[] = [];
    const made = requests.map((request) => {
      const job = newJob(request, now);
      if (request.idempotency) keyed.push({ idempotency: request.idempotency, job });
      return job;
    });
    // All of them are locked first, in the same order as settle locks them.
    const held = await heldConversations(tx, requests);
    const keys = await takeKeys(tx, keyed, now);
    for (const [i, job] of made.entries()) {
      const { conversationId, idempotency } = requests[i] as WorkRequest;
      const conversation = conversationId === undefined ? undefined : held.get(conversationId);
      if (conversationId !== undefined && !conversation) throw notFound('Conversation');
      const earlier = idempotency && keys.holder(idempotency);
      if (idempotency && earlier) acceptances.push(repeated(earlier, idempotency));
      // A refused request takes no key.
      else if (conversation?.status === 'active') acceptances.push({ kind: 'conversation_active' });
      // The job of the earlier request is gone.
      else if (idempotency && !keys.isFree(idempotency)) acceptances.push({ kind: 'key_reused' });
      else {
        acceptances.push({ kind: 'accepted', job });
        jobs.push(job);
        if (idempotency) keys.give({ idempotency, job });
        if (conversation) {
          await continueConversation(tx, conversation, now, writer);
          held.set(conversation.id, { ...conversation, status: 'active' });
        }
      }
    }
    await keys.record(tx);
    const claimed = claimHere(jobs);
    const continued = new Set(requests.map(({ conversationId }) => conversationId));
    const begun = jobs.filter((job) => !continued.has(job.conversation_id));
    await record(tx, jobs, { claimed, begun }, now, now + (worker?.leaseMs ?? 0), writer);
    tx.afterCommit(() => {
      beginOrHint(jobs, claimed);
      observe?.(jobs);
    });
    return acceptances;
  }

  /** The jobs that this process begins at once: it has a free slot and no earlier hint waits. */
  function claimHere(jobs: readonly NewJob[]): ReadonlySet<NewJob> {
    const claimed = new Set<NewJob>();
    if (worker === undefined) return claimed;
    const slots = new Map<QueueName, number>();
    for (const job of jobs) {
      const name = queueOf(job.trigger_type);
      const left = slots.get(name) ?? worker.freeSlots(name);
      slots.set(name, left - 1);
      if (left > 0) claimed.add(job);
    }
    return claimed;
  }

  function beginOrHint(jobs: readonly NewJob[], claimed: ReadonlySet<NewJob>): void {
    for (const job of jobs) {
      if (claimed.has(job)) worker?.begin(firstClaim(job));
      else queue.sendHints(queueOf(job.trigger_type), [{ id: job.id, generation: 0, delayMs: 0 }]);
    }
  }

  return Object.assign(createBatch(database, within), { within });
}

function newJob(request: WorkRequest, now: number): NewJob {
  return {
    id: newId(),
    organization_id: request.organizationId,
    api_key_id: request.apiKeyId,
    agent_id: request.agentId,
    conversation_id: request.conversationId ?? newId(),
    skill_category: request.skill.category,
    skill_name: request.skill.name,
    skill_version: request.skill.version,
    trigger_type: request.triggerType,
    user_id: request.userId,
    max_attempts: request.maxAttempts,
    run_at: now,
    retry_of: request.retryOf,
    input: request.input,
    created_at: now,
  };
}

/** A job as its first claim returns it. */
function firstClaim(job: NewJob): ClaimedJob {
  return { ...job, attempt: 1, epoch: 1, deaths: 0, started_at: job.created_at };
}

/** The acceptance of a request whose key an earlier request has used. */
function repeated(earlier: Holder<AcceptedJob>, { fingerprint }: IdempotencyKey): Acceptance {
  if (earlier.fingerprint !== fingerprint) return { kind: 'key_reused' };
  return { kind: 'replayed', job: earlier.job };
}

/** The conversations that requests continue, by id. */
async function heldConversations(tx: Transaction, requests: readonly WorkRequest[]) {
  const ids = requests.flatMap(({ conversationId }) => conversationId ?? []);
  const rows = ids.length === 0 ? [] : await conversationsHeld(tx, ids);
  return new Map(rows.map((row) => [row.id, row]));
}

async function record(
  tx: Transaction,
  jobs: readonly NewJob[],
  /** The jobs that are claimed here, and the jobs that begin a conversation. */
  { claimed, begun }: { claimed: ReadonlySet<NewJob>; begun: readonly NewJob[] },
  now: number,
  leaseUntil: number,
  writer: string,
): Promise<void> {
  if (jobs.length === 0) return;
  await insertJobs(tx, jobs, claimed, leaseUntil);
  await beginConversations(
    tx,
    begun.map((job) => ({ ...job, id: job.conversation_id })),
    now,
    writer,
  );
  await addMessages(
    tx,
    jobs.map((job) => ({
      conversation_id: job.conversation_id,
      job_id: job.id,
      role: 'user',
      content: messageText(job.input),
      at: now,
    })),
  );
  await appendEvents(
    tx,
    begun.map((job) => ({
      type: 'conversation.created',
      organizationId: job.organization_id,
      agentId: job.agent_id,
      data: {
        conversation_id: job.conversation_id,
        trigger_type: job.trigger_type,
        user_id: job.user_id,
      },
    })),
    now,
  );
  await changeJobCounts(
    tx,
    writer,
    jobs.map((kind) => ({ kind, from: null, to: claimed.has(kind) ? 'active' : 'queued' })),
  );
}

/** An input or output as a message shows it: a string as itself, anything else as JSON. */
export function messageText(json: string): string {
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}
