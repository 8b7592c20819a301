/**
 * `POST /api/webhooks/agent/:webhookToken` (specification: Webhook trigger; docs/decisions/triggers.md): the only
 * path of /api without an API key. Token, rate limit and the creating key are checked before the body is
 * read. The body stays bytes, because the signature covers bytes.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRepeated } from '../../adapters/http/authenticate.ts';
import { asPlatformError } from '../../adapters/http/errors.ts';

import { type Query, takingAnyQuery } from '../../adapters/http/query.ts';
import type { RateLimiter } from '../../adapters/http/rate-limit.ts';
import type { Server } from '../../adapters/http/server.ts';
import { isReadable, originForm, pathOf, unreadableParameter } from '../../adapters/http/url.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Clock } from '../../kernel/clock.ts';
import { invalid, PlatformError } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { EndedCall, TriggerCalls } from './calls.ts';
import { unreadableType } from './payload.ts';
import type { TriggerReceiver } from './receive.ts';
import { reasonOf, requireActive, triggerNotFound } from './refusals.ts';
import type { TriggerRow } from './triggers.store.ts';
import type { Triggers } from './triggers.ts';
import { callSchema, idempotencyKeyMax } from './webhook-trigger.schemas.ts';

const prefix = '/api/webhooks/agent';
/** The sender's idempotency key, else the id that the sender gives its delivery. */
const idempotencyHeaders: readonly string[] = [
  'idempotency-key',
  'x-github-delivery',
  'webhook-id',
];

/** What admits and takes the calls of triggers. */
interface CallParts {
  readonly triggers: Triggers;
  readonly receiver: TriggerReceiver;
  readonly calls: TriggerCalls;
  readonly clock: Clock;
  readonly limiter: RateLimiter;
}

/** The refusal of a request that no route matches. */
type Unmatched = (method: string, url: string) => PlatformError;

/** A call of an existing trigger, with the facts for its log so far. */
interface KnownCall {
  readonly id: string;
  readonly triggerId: string;
  readonly receivedAt: number;
  refusal: PlatformError | null;
  jobId: string | null;
  eventId: string | null;
  isReplay: boolean;
}

/** The facts of a call before its body is read. */
interface Marked {
  admitted: { readonly trigger: TriggerRow; readonly caller: Caller };
  known: KnownCall | null;
}
const marksOf = (request: FastifyRequest) => request as unknown as Marked;

export function webhookTriggerRoutes(server: Server, parts: CallParts, unmatched: Unmatched) {
  server.register(
    (registered, _options, done) => {
      const scope = registered as unknown as Server;
      takeAnyBody(scope);
      recordCalls(scope, parts.calls);
      refuseUnmatched(scope, unmatched);
      callRoute(scope, parts);
      done();
    },
    { prefix },
  );
}

/** Bodies stay bytes, of any media type. */
function takeAnyBody(scope: Server): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, parsed) =>
    parsed(null, body),
  );
}

/** Records each call of an existing trigger in its log. */
function recordCalls(scope: Server, calls: TriggerCalls): void {
  scope.decorateRequest('admitted', null);
  scope.decorateRequest('known', null);
  // Before the response is sent, because some senders close the connection first. It only writes to memory.
  scope.addHook('onSend', (request, reply, _payload, next) => {
    const { known } = marksOf(request);
    if (known !== null) calls.record(endedCall(known, request, reply));
    next();
  });
  scope.setErrorHandler((error, request) => {
    const { code } = error as { code?: unknown };
    // The usual message names JSON only; triggers take other types as well.
    const refusal = code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? unreadableType() : error;
    const { known } = marksOf(request);
    if (known !== null) known.refusal = asPlatformError(refusal);
    throw refusal;
  });
}

function endedCall(call: KnownCall, request: FastifyRequest, reply: FastifyReply): EndedCall {
  const { refusal, ...facts } = call;
  return {
    ...facts,
    durationMs: Math.round(reply.elapsedTime),
    status: reply.statusCode,
    error: refusal?.code ?? null,
    message: refusal === null ? null : reasonOf(refusal),
    bodyBytes: Buffer.isBuffer(request.body) ? request.body.length : null,
  };
}

/** An unreadable token is an unknown trigger; any other path without a route gets the usual refusal. */
function refuseUnmatched(scope: Server, unmatched: Unmatched): void {
  const refusalOf = ({ method, originalUrl }: FastifyRequest): PlatformError => {
    const isPathReadable = isReadable(pathOf(originForm(originalUrl)));
    return isPathReadable ? unmatched(method, originalUrl) : triggerNotFound();
  };
  // This path needs no key, so every sender may see why it was refused.
  scope.addHook('onRequest', (request, _reply, next) => {
    next(request.is404 ? refusalOf(request) : undefined);
  });
  scope.setNotFoundHandler((request) => {
    throw refusalOf(request);
  });
}

/** Looks up the trigger of a call and its creating key, and applies the rate limit. */
async function admit(
  { triggers, receiver, clock, limiter }: CallParts,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { webhookToken } = request.params as { webhookToken: string };
  const receivedAt = clock.now();
  const trigger = await triggers.byToken(webhookToken);
  marksOf(request).known = {
    id: newId(),
    triggerId: trigger.id,
    receivedAt,
    refusal: null,
    jobId: null,
    eventId: null,
    isReplay: false,
  };
  requireActive(trigger);
  await limit(limiter, reply, trigger);
  const caller = await receiver.callerOf(trigger);
  marksOf(request).admitted = { trigger, caller };
}

/** Applies the trigger's rate limit, which all its senders share. */
async function limit(
  limiter: RateLimiter,
  reply: FastifyReply,
  { id, rate_limit }: TriggerRow,
): Promise<void> {
  const decision = await limiter.hit(`trigger:${id}`, rate_limit, true);
  reply.headers({
    'x-ratelimit-limit': decision.limit,
    'x-ratelimit-remaining': decision.remaining,
    'x-ratelimit-reset': decision.reset,
  });
  if (decision.allowed) return;
  throw new PlatformError(
    'rate_limit_exceeded',
    `This trigger may be called ${decision.limit} times per minute`,
    { retryAfter: decision.retryAfter },
  );
}

function callRoute(scope: Server, parts: CallParts): void {
  const options = {
    config: takingAnyQuery,
    onRequest: (request: FastifyRequest, reply: FastifyReply) => admit(parts, request, reply),
    // The skill's schema validates the result of the mapping instead.
    validatorCompiler: () => () => true,
    schema: callSchema,
  };
  scope.post('/:webhookToken', options, async (request, reply) => {
    const { admitted, known } = marksOf(request);
    const { trigger, caller } = admitted;
    const received = await parts.receiver.receive(trigger, caller, {
      headers: request.headers,
      bytes: (request.body as Buffer | undefined) ?? Buffer.alloc(0),
      query: queryOf(request),
      idempotencyKey: idempotencyKeyOf(request, idempotencyHeaders),
      signedKey: idempotencyKeyOf(request, ['webhook-id']),
    });
    const { job, isReplay, keyResult } = received;
    if (isReplay) reply.header('idempotent-replayed', 'true');
    if (job === null) {
      const { eventId, delivered } = received;
      if (known !== null) Object.assign(known, { eventId, isReplay });
      return reply.status(202).send({ event_id: eventId, delivered });
    }
    if (keyResult !== undefined) reply.header('x-job-key-result', keyResult);
    if (known !== null) Object.assign(known, { jobId: job.id, isReplay });
    reply.header('location', `/api/jobs/${job.id}`);
    // That of a job whose key has kept it, which may have begun.
    const status = keyResult === undefined ? 'queued' : (job.status ?? 'queued');
    return reply.status(202).send({ job_id: job.id, conversation_id: job.conversation_id, status });
  });
}

function queryOf(request: FastifyRequest): Query | PlatformError {
  const unreadable = unreadableParameter(request.originalUrl);
  if (unreadable === null) return request.query as Query;
  return invalid(unreadable, 'must be percent-encoded UTF-8 without NUL');
}

/** The value of the first header in `names` that the request has; the refusal of an invalid one. */
function idempotencyKeyOf(request: FastifyRequest, names: readonly string[]) {
  const name = names.find((one) => request.headers[one] !== undefined);
  const key = name === undefined ? undefined : request.headers[name];
  if (name === undefined || key === undefined) return undefined;
  if (typeof key !== 'string' || isRepeated(request, name))
    return invalid(name, 'must be given once');
  if (key !== '' && key.length <= idempotencyKeyMax) return key;
  return invalid(name, `must be 1 to ${idempotencyKeyMax} characters`);
}
