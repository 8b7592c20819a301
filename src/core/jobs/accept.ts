/**
 * Accept: the one way in for work. One transaction records the job, its conversation, the user's
 * message and the event; the answer and the hint are sent only after its commit. Where
 * admission lets the job start here at once, the same transaction claims it, which saves the hint and a
 * second write. It checks no permission, input or agent: its callers have done that. It has more than 300 lines
 * because what its transaction records has to be read together.
 */

import { Batch } from '../../adapters/database/batch.ts';
import type { Transaction } from '../../adapters/database/database.ts';
import type { TriggerType } from '../../adapters/database/tables.ts';
import { notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { normalPriority } from '../../kernel/priority.ts';
import type { Context } from '../context/context.ts';
import { addMessages, beginConversations, continueConversation } from '../conversations/record.ts';
import type { NewEvent } from '../events/events.ts';
import { appendEventsOf } from '../events/outbox.ts';
import { keepNamedFiles } from '../files/named-files.ts';
import {
  type Candidate,
  type Holder,
  type IdempotencyKey,
  type KeysOfBatch,
  takeKeys,
} from './idempotency.ts';
import { type ConversationMode, isOfConversation } from './in-conversation/conversation-gates.ts';
import {
  giveToUsers,
  type HeldConversations,
  heldConversations,
  stopInterrupted,
} from './in-conversation/held-conversations.ts';
import { keyBatches } from './job-keys/job-key-rounds.ts';
import { type HeldJobKeys, type JobKey, lockJobKeys } from './job-keys/job-keys.ts';
import {
  type ClaimedJob,
  type JobCountChanges,
  type JobRow,
  jobCounts,
  type NewJob,
} from './jobs.store.ts';
import { messageText } from './message-text.ts';
import { queueOf, sendHint } from './queues.ts';
import { listSuperseded, listWithUserMessage, takeOverRecord } from './resumed-jobs.ts';
import type { Settler } from './settle.ts';
import { type JobTiming, timesOf } from './timing.ts';
import type { Admission } from './turns/admission.ts';
import { hintInTime } from './turns/later.ts';
import type { JobRunners } from './turns/runner.ts';

/** Work to be accepted; its caller has checked it. */
export interface WorkRequest {
  readonly organizationId: string;
  readonly apiKeyId: string;
  readonly agentId: string;
  readonly userId: string;
  /** What the user is called, for instructions; undefined where the client does not say. */
  readonly userName?: string | undefined;
  /** The values in instructions, as JSON, that a resumed job goes on with. */
  readonly instructionValues?: string | null;
  /** Whether a client named the user; else `userId` is the name of the key or the trigger. */
  readonly isForUser?: boolean;
  readonly triggerType: TriggerType;
  readonly skill: { category: string; name: string; version: string };
  readonly maxAttempts: number;
  /** Its place in `priorities`; normal where it is left out. */
  readonly priority?: number | undefined;
  /** The skill's input as JSON text. */
  readonly input: string;
  /** Fields of the agent as JSON text, which the job has instead of the saved ones. */
  readonly agentOverrides?: string | null | undefined;
  /** The job that this one repeats. */
  readonly retryOf: string | null;
  /** From which jobs' records it goes on (`taken-over.ts`); the last of them is `retryOf`. */
  readonly resumes?: string;
  /** The job whose run starts this one; it is committed together with that job's step. */
  readonly parent?: Parent;
  /** The conversation of the same agent that it continues; without it the job begins a new one. */
  readonly conversationId?: string | undefined;
  /** What it does while another job of the conversation has not ended; `reject` where it is left out. */
  readonly conversationMode?: ConversationMode | undefined;
  readonly idempotency?: IdempotencyKey | undefined;
  /** The key by which it is one of a kind. */
  readonly jobKey?: JobKey | undefined;
  /** The batch that it is part of. */
  readonly batchId?: string | undefined;
  /** When it may begin; as soon as it can by default. */
  readonly timing?: JobTiming | undefined;
  /** The client's own key for limits that count by it. */
  readonly concurrencyKey?: string | undefined;
}

/** The job that starts another, as the row of the other names it. */
interface Parent {
  readonly jobId: string;
  /** The number of the parent's step that waits for it. */
  readonly step: number;
  /** How many jobs are above the parent. */
  readonly depth: number;
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
  /** `replaces` is the earlier job of its key whose place it takes. */
  | { readonly kind: 'accepted'; readonly job: AcceptedJob; readonly replaces?: string }
  | { readonly kind: 'replayed'; readonly job: AcceptedJob }
  /** The job of an earlier request with its key runs instead: as it is, or with the input of this request. */
  | { readonly kind: 'skipped' | 'debounced'; readonly job: JobRow }
  /** With the mode skip: the job of its key that has not ended is another user's. */
  | { readonly kind: 'other_users_key' }
  /** The Idempotency-Key was used for a different request. */
  | { readonly kind: 'key_reused' }
  /** Another run of the conversation that it continues has not ended. */
  | { readonly kind: 'conversation_active' }
  /** As many jobs wait in the conversation as may. */
  | { readonly kind: 'conversation_full' }
  /** The conversation that it continues is another user's. */
  | { readonly kind: 'other_user' }
  /** The conversation has gone on since the job whose record it would go on from. */
  | { readonly kind: 'superseded' };

export class Acceptor {
  readonly context: Context;
  readonly admission: Admission;
  readonly settler: Settler;
  readonly runners: JobRunners;
  readonly #requests: Batch<WorkRequest, Acceptance>;

  /** The runners begin the jobs that are claimed as they are accepted. */
  constructor(context: Context, admission: Admission, settler: Settler, runners: JobRunners) {
    this.context = context;
    this.admission = admission;
    this.settler = settler;
    this.runners = runners;
    this.#requests = new Batch(context.database, (tx, requests) => this.acceptWithin(tx, requests));
  }

  /** Resolves after the commit. */
  accept(request: WorkRequest): Promise<Acceptance> {
    return this.#requests.add(request);
  }

  /** Accepts in the caller's transaction, for rows that must be committed together with the jobs. */
  async acceptWithin(tx: Transaction, requests: readonly WorkRequest[]): Promise<Acceptance[]> {
    if (!requests.some(hasJobKey)) return acceptAll(this, tx, requests);
    const acceptances: Acceptance[] = [];
    for (const round of keyBatches(requests)) {
      const chosen = round.map((i) => requests[i] as WorkRequest);
      const accepted = await acceptAll(this, tx, chosen, requests);
      accepted.forEach((one, n) => {
        acceptances[round[n] as number] = one;
      });
    }
    return acceptances;
  }
}

const hasJobKey = ({ jobKey }: WorkRequest) => jobKey !== undefined;

/** Accepts requests, which are all those of a transaction, or a round of them. */
async function acceptAll(
  acceptor: Acceptor,
  tx: Transaction,
  requests: readonly WorkRequest[],
  ofAllRounds = requests,
): Promise<Acceptance[]> {
  const { admission, context, settler } = acceptor;
  const { clock, writer } = context;
  const now = clock.now();
  await lockGatesFirst(tx, settler, requests, now);
  // All of them are locked in the same order as settle locks them.
  const held = await heldConversations(tx, settler, requests);
  const made = requests.map((request) => newJob(request, now, held));
  const keys = await takeKeys(tx, keyedOf(requests, made), now);
  const jobKeys = await jobKeysOf(tx, requests, made, now);
  if (jobKeys !== null) {
    // Before the counts that a replacement changes. The first round holds the keys of all.
    const later = ofAllRounds.filter(hasJobKey).map((request) => newJob(request, now, held));
    await settler.parts.places.lockGatesOf(tx, [...made, ...later], jobKeys.earlierJobs());
  }
  const superseded = await listSuperseded(tx, requests);
  const acceptances: Acceptance[] = [];
  const jobs: NewJob[] = [];
  for (let i = 0; i < made.length; i++) {
    const job = made[i] as NewJob;
    const request = requests[i] as WorkRequest;
    const { idempotency } = request;
    // Of a repeat, the job that goes on already is its own.
    const isRepeat = idempotency !== undefined && keys.holder(idempotency) !== undefined;
    const isSuperseded = job.resumes !== null && superseded.has(job.retry_of ?? '') && !isRepeat;
    const first: Acceptance = isSuperseded
      ? { kind: 'superseded' }
      : acceptanceOf(request, job, held, keys);
    const acceptance = first.kind === 'accepted' ? withJobKey(first, request, job, jobKeys) : first;
    acceptances.push(acceptance);
    if (first.kind !== 'accepted' || acceptance.kind === 'other_users_key') continue;
    const named = acceptance.kind === 'accepted' ? job : (acceptance as { job: JobRow }).job;
    if (idempotency) keys.give({ idempotency, job: named });
    if (acceptance.kind !== 'accepted') continue;
    jobs.push(job);
    const continued = held.get(request.conversationId ?? '');
    if (continued === undefined) continue;
    if (continued.status === 'active') {
      const { conversationMode: mode } = request;
      continued.waitIn(job, mode === undefined || mode === 'reject' ? 'queue' : mode);
    } else {
      await continueConversation(tx, continued.row, now, writer);
      continued.begin(job, settler.parts.inConversation.mayBeFollowed(job));
    }
  }
  await keys.record(tx);
  const placed = await jobKeys?.record(tx, settler, context.queue);
  // Also those of inputs that earlier jobs of their keys get.
  for (const job of made) await keepNamedFiles(tx, job, context.config.fileRetentionDays);
  if (jobs.length === 0) return acceptances;
  await giveToUsers(tx, held);
  const claimed = await admission.recordNew(tx, jobs, now, placed);
  for (const job of jobs) if (job.resumes !== null) await takeOverRecord(tx, job);
  const begun = held.size === 0 ? jobs : jobs.filter((job) => !held.has(job.conversation_id));
  await recordNewConversations(tx, begun, jobs, now, writer);
  const changes: JobCountChanges = jobs.map((kind) => ({
    kind,
    from: null,
    to: claimed.has(kind) ? 'active' : 'queued',
  }));
  const recorded = await stopInterrupted(tx, settler, held, changes);
  if (!recorded) await jobCounts.change(tx, writer, changes);
  tx.afterCommit(() => {
    for (const job of jobs) beginOrHint(acceptor, job, claimed.has(job), now);
    context.observers.accepted(jobs);
  });
  return acceptances;
}

/**
 * Locks the gates of requests before the conversations that some of them continue: so does settle. Not with job keys, whose jobs
 * are locked before gates. The locks of gates do not depend on the user, who is known only with the conversation.
 */
async function lockGatesFirst(
  tx: Transaction,
  { parts }: Settler,
  requests: readonly WorkRequest[],
  now: number,
): Promise<void> {
  if (!requests.some(({ conversationId }) => conversationId !== undefined)) return;
  if (!parts.places.limits.areAny() || requests.some(hasJobKey)) return;
  const works = requests.map((request) => newJob(request, now, new Map()));
  await parts.places.lockGatesOf(tx, works, []);
}

/** Locks the keys of the requests that have one; null without any. */
async function jobKeysOf(
  tx: Transaction,
  requests: readonly WorkRequest[],
  made: readonly NewJob[],
  now: number,
): Promise<HeldJobKeys | null> {
  if (!requests.some(hasJobKey)) return null;
  const keyed = requests.flatMap(({ jobKey }, i) =>
    jobKey === undefined ? [] : [{ jobKey, job: made[i] as NewJob }],
  );
  return lockJobKeys(tx, keyed, now);
}

/** The acceptance of a request beside an earlier job of its key. */
function withJobKey(
  acceptance: Acceptance,
  { jobKey }: WorkRequest,
  job: NewJob,
  jobKeys: HeldJobKeys | null,
): Acceptance {
  if (jobKey === undefined || jobKeys === null) return acceptance;
  return jobKeys.acceptanceOf(jobKey, job);
}

/** What becomes of a request, after the earlier ones of its batch. A refused request takes no key. */
function acceptanceOf(
  { conversationId, conversationMode = 'reject', idempotency }: WorkRequest,
  job: NewJob,
  held: HeldConversations,
  keys: KeysOfBatch<NewJob>,
): Acceptance {
  const conversation = conversationId === undefined ? undefined : held.get(conversationId);
  if (conversationId !== undefined && !conversation) throw notFound('Conversation');
  if (conversation?.isForOther(job)) return { kind: 'other_user' };
  const earlier = idempotency && keys.holder(idempotency);
  if (idempotency && earlier) return repeated(earlier, idempotency);
  if (conversation?.status === 'active') {
    if (conversationMode === 'reject' || !conversation.takesMore)
      return { kind: 'conversation_active' };
    if (!conversation.hasRoomFor(job, conversationMode)) return { kind: 'conversation_full' };
  }
  // The job of the earlier request is gone.
  if (idempotency && !keys.isFree(idempotency)) return { kind: 'key_reused' };
  return { kind: 'accepted', job };
}

function beginOrHint(
  { context, runners }: Acceptor,
  job: NewJob,
  isClaimed: boolean,
  now: number,
): void {
  if (isClaimed) runners.get(queueOf(job.trigger_type))?.beginAccepted(firstClaim(job));
  // Announced once its gate has a place for it.
  else if (job.held_by) return;
  else if (job.run_at === now) sendHint(context.queue, job, 0);
  else hintInTime(context.queue, job, 0, job.run_at, now);
}

function keyedOf(
  requests: readonly WorkRequest[],
  jobs: readonly NewJob[],
): readonly Candidate<NewJob>[] {
  const keyed: Candidate<NewJob>[] = [];
  requests.forEach(({ idempotency }, i) => {
    if (idempotency) keyed.push({ idempotency, job: jobs[i] as NewJob });
  });
  return keyed;
}

function newJob(request: WorkRequest, now: number, held: HeldConversations): NewJob {
  // A run that continues a user's conversation is for that user, whose messages it reads.
  const user = request.isForUser ? undefined : held.get(request.conversationId ?? '')?.user;
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
    user_id: user ?? request.userId,
    for_user: request.isForUser === true || user !== undefined ? 1 : 0,
    max_attempts: request.maxAttempts,
    priority: request.priority ?? normalPriority,
    run_at: now,
    expires_at: null,
    retry_of: request.retryOf,
    resumes: request.resumes ?? null,
    batch_id: request.batchId ?? null,
    job_key: request.jobKey?.key ?? null,
    input: request.input,
    agent_overrides: request.agentOverrides ?? null,
    instruction_values: request.instructionValues ?? valuesOfUser(request.userName),
    created_at: now,
    ...(request.parent === undefined ? null : childOf(request.parent)),
    ...(request.timing === undefined ? null : timesOf(request.timing, now)),
    ...(request.concurrencyKey === undefined ? null : { concurrency_key: request.concurrencyKey }),
  };
}

/** The value of a user's name, before a model is asked. */
const valuesOfUser = (name: string | undefined) =>
  name === undefined ? null : JSON.stringify({ 'user.name': name });

function childOf({ jobId, step, depth }: Parent) {
  return { parent_job_id: jobId, parent_step: step, depth: depth + 1 };
}

/** What a job has at its first claim, unless it is a child. */
const firstClaimed = {
  ...{ parent_job_id: null, parent_step: null, depth: 0 },
  ...{ attempt: 1, epoch: 1, deaths: 0, resumed_at: null, active_ms: 0 },
  ...{ attempts_before: 0, idle_claims: 0 },
  ...{ gated: 0, held_by: null, concurrency_key: null },
};

/** A job as its first claim returns it. */
function firstClaim(job: NewJob): ClaimedJob {
  return { ...firstClaimed, ...job, started_at: job.created_at };
}

/** The acceptance of a request whose key an earlier request has used. */
function repeated(earlier: Holder<AcceptedJob>, { fingerprint }: IdempotencyKey): Acceptance {
  if (earlier.fingerprint !== fingerprint) return { kind: 'key_reused' };
  return { kind: 'replayed', job: earlier.job };
}

/** Whether the input is a message of the user now. One that waits in its conversation gets its message when it is let go. */
const isUserMessageNow = ({ held_by }: NewJob) => !held_by || !isOfConversation(held_by);

/** Records the conversations that jobs begin, and the user's message of each job. */
async function recordNewConversations(
  tx: Transaction,
  begun: readonly NewJob[],
  jobs: readonly NewJob[],
  now: number,
  writer: string,
): Promise<void> {
  await beginConversations(
    tx,
    begun.map((job) => ({ ...job, id: job.conversation_id })),
    now,
    writer,
  );
  const withMessage = await listWithUserMessage(tx, jobs);
  const withoutMessage = jobs.filter((job) => isUserMessageNow(job) && !withMessage.has(job));
  await addMessages(
    tx,
    withoutMessage.map((job) => ({
      conversation_id: job.conversation_id,
      job_id: job.id,
      role: 'user',
      content: messageText(job.input),
      at: now,
    })),
  );
  await appendEventsOf(tx, begun, { agentOf: (job) => job, eventsOf: beginningOf }, now);
}

function beginningOf(job: NewJob): NewEvent[] {
  return [
    {
      type: 'conversation.created',
      organizationId: job.organization_id,
      agentId: job.agent_id,
      data: {
        conversation_id: job.conversation_id,
        trigger_type: job.trigger_type,
        user_id: job.user_id,
      },
    },
  ];
}
