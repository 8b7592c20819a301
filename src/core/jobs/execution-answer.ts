/**
 * The parts that all requests to run a skill share: the headers, the options that these set, and the answer, which is the
 * accepted job, or the ended one where the client waits for it.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JobStatus } from '../../adapters/database/tables.ts';
import {
  IdempotencyKey,
  idempotencyKeyOf,
  OnceGiven,
  onceGiven,
} from '../../adapters/http/idempotency-key.ts';
import { goneOrStopping, Prefer, waitSeconds } from '../../adapters/http/prefer.ts';
import { apiRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import { carries } from '../../adapters/http/response-headers.ts';
import { userFor, userNameMax, userNameOf } from '../../adapters/http/user-id.ts';
import type { Caller } from '../../kernel/caller.ts';
import { invalid, isUnavailable } from '../../kernel/errors.ts';
import { type Priority, priorities } from '../../kernel/priority.ts';
import type { Executed, ExecutionOptions } from './execute.ts';
import { concurrencyKeyMax } from './gates/gates.ts';
import {
  type ConversationMode,
  conversationModes,
  waitingMax,
} from './in-conversation/conversation-gates.ts';
import { jobKeyHeaders, jobKeyOfHeaders } from './job-keys/job-key-headers.ts';
import { jobSummary } from './job-views.ts';
import { FullJob, ListedJob } from './jobs.schemas.ts';
import type { Jobs } from './jobs.ts';
import { timingHeaders, timingOf } from './timing-headers.ts';

/** Headers of every request that runs a skill. */
export const executionHeaders = {
  'x-user-id': OnceGiven(
    "The user on whose behalf the client calls; by default the user of the conversation that it continues, else the key's client_name. 409 conflict where that conversation is another user's.",
  ),
  'x-user-name': OnceGiven(
    `What the user is called: {{user.name}} in the agent's instructions. 1 to ${userNameMax} characters; the id of the user by default.`,
  ),
  'idempotency-key': IdempotencyKey(
    'Repeats with the same key within 24 hours make no second job.',
  ),
  'x-conversation-id': OnceGiven(
    'A conversation of the agent to continue, for skills that think. With API_KEY_PERMISSIONS=strict the key needs the scope conversations.',
  ),
  'x-conversation-mode': OnceGiven(
    `What the request does while another job of the conversation has not ended. reject, the default: 409 conflict. queue: its job waits behind that one and begins when it has ended, however it ended; up to ${waitingMax} jobs wait in the order of acceptance. steer: the run of that job takes the message before the next call of its model, and the request's job ends with that one, with its output; where it takes none, as queue. interrupt: cancels that job, and its own begins as soon as that has stopped, before those that wait. 400 validation_error for anything else.`,
  ),
  'x-priority': OnceGiven(
    `${priorities.join(', ')}: the order in which jobs of the organization begin; normal by default. Child jobs and retries have it too. 400 validation_error for anything else.`,
  ),
  'x-concurrency-key': OnceGiven(
    `For skills that limit their runs per client-key: runs of the organization with the same text, of 1 to ${concurrencyKeyMax} characters, count together, and those without the header.`,
  ),
  prefer: Prefer,
  ...timingHeaders,
  ...jobKeyHeaders,
};

/** The options of a run that headers set. */
export function executionOptions(request: FastifyRequest, caller: Caller): ExecutionOptions {
  const { headers } = request;
  const isTimed =
    headers['x-run-at'] !== undefined ||
    headers['x-delay-seconds'] !== undefined ||
    headers['x-expires-in'] !== undefined;
  const isKeyed =
    headers['x-job-key'] !== undefined ||
    headers['x-job-key-mode'] !== undefined ||
    headers['x-debounce-seconds'] !== undefined ||
    headers['x-debounce-max-seconds'] !== undefined;
  const key = idempotencyKeyOf(request);
  return {
    ...userFor(request, caller),
    userName: userNameOf(request),
    priority: priorityOf(request),
    conversationMode: conversationModeOf(request),
    triggerType: 'api',
    idempotency: key === undefined ? undefined : { owner: caller.keyId, key },
    concurrencyKey: concurrencyKeyOf(request),
    timing: isTimed ? timingOf(request) : undefined,
    jobKey: isKeyed ? jobKeyOfHeaders(request) : undefined,
  };
}

function priorityOf(request: FastifyRequest): number | undefined {
  const name = onceGiven(request, 'x-priority');
  if (name === undefined) return undefined;
  const priority = priorities.indexOf(name as Priority);
  if (priority === -1) throw invalid('x-priority', `must be one of ${priorities.join(', ')}`);
  return priority;
}

function conversationModeOf(request: FastifyRequest): ConversationMode | undefined {
  const mode = onceGiven(request, 'x-conversation-mode');
  if (mode === undefined || conversationModes.some((one) => one === mode)) {
    return mode as ConversationMode | undefined;
  }
  throw invalid('x-conversation-mode', `must be one of ${conversationModes.join(', ')}`);
}

function concurrencyKeyOf(request: FastifyRequest): string | undefined {
  const key = onceGiven(request, 'x-concurrency-key');
  if (key === undefined || (key.length > 0 && key.length <= concurrencyKeyMax)) return key;
  throw invalid('x-concurrency-key', `must have 1 to ${concurrencyKeyMax} characters`);
}

/** Answers of every request that runs a skill. */
export const executionResponses = {
  200: {
    ...FullJob,
    ...carries('Location', 'Preference-Applied', 'Idempotent-Replayed', 'X-Job-Key-Result'),
    description: 'The job, which ended within the wait.',
  },
  202: { ...ListedJob, ...carries('Location', 'Idempotent-Replayed', 'X-Job-Key-Result') },
  ...apiRefusals(
    'skill_not_found',
    'not_found',
    'insufficient_scope',
    ...bodyRefusals,
    'conflict',
    'agent_paused',
    'idempotency_key_reused',
  ),
};

/**
 * Answers with an accepted job. Synchronous unless the client waits. `stopping` aborts
 * when the platform stops: requests that wait are then answered with the accepted job.
 */
export function answerAccepted(
  jobs: Jobs,
  stopping: AbortSignal,
  reply: FastifyReply,
  { job, isReplay, keyResult }: Executed,
): FastifyReply | Promise<FastifyReply> {
  reply.header('location', `/api/jobs/${job.id}`);
  if (isReplay) reply.header('idempotent-replayed', 'true');
  if (keyResult !== undefined) reply.header('x-job-key-result', keyResult);
  const isOfKey = keyResult === 'skipped' || keyResult === 'debounced';
  const status = isOfKey ? (job.status ?? 'queued') : 'queued';
  const seconds = waitSeconds(reply.request.headers.prefer);
  return seconds === 0
    ? answerStatus(reply, job, status)
    : answerEnd(
        jobs,
        goneOrStopping(reply, stopping),
        reply,
        { job, isEarlier: isReplay || isOfKey, status },
        seconds,
      );
}

async function answerEnd(
  jobs: Jobs,
  signal: AbortSignal,
  reply: FastifyReply,
  {
    job,
    isEarlier,
    status: known,
  }: { readonly job: Executed['job']; readonly isEarlier: boolean; readonly status: JobStatus },
  seconds: number,
): Promise<FastifyReply> {
  const organizationId = job.organization_id;
  const ms = seconds * 1000;
  let status = known;
  try {
    const ended = isEarlier
      ? await jobs.awaitEnd(organizationId, job.id, ms, signal)
      : await jobs.awaitAccepted(job, ms, signal);
    if (ended !== null) {
      return reply.header('preference-applied', `wait=${seconds}`).status(200).send(ended);
    }
    ({ status } = await jobs.find(organizationId, job.id));
  } catch (error) {
    // The job is accepted. After an error its client would send it again.
    if (!isUnavailable(error)) throw error;
  }
  return answerStatus(reply, job, status);
}

function answerStatus(reply: FastifyReply, job: Executed['job'], status: JobStatus): FastifyReply {
  return reply.status(202).send(jobSummary(job, status));
}
