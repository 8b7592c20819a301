/** `/api/batches`: many runs in one request (docs/decisions/jobs.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { acceptingWork, callerOf } from '../../../adapters/http/authenticate.ts';
import { IdempotencyKey, idempotencyKeyOf } from '../../../adapters/http/idempotency-key.ts';
import { lookUp } from '../../../adapters/http/look-up.ts';
import type { RateLimiter } from '../../../adapters/http/rate-limit.ts';
import { apiRefusals, bodyRefusals } from '../../../adapters/http/refusals.ts';
import { RequestHits } from '../../../adapters/http/request-hits.ts';
import { carries } from '../../../adapters/http/response-headers.ts';
import { Id, Page, Paged } from '../../../adapters/http/schemas.ts';
import type { Server } from '../../../adapters/http/server.ts';
import { invalid, invalidIn } from '../../../kernel/errors.ts';
import { compileSchema } from '../../../kernel/json-schema.ts';
import { executionHeaders } from '../execution-answer.ts';
import type { Jobs } from '../jobs.ts';
import { CancelledJobs, RetriedJobs } from '../many-jobs/many-jobs.schemas.ts';
import {
  AcceptedBatch,
  Batch,
  BatchFrame,
  BatchSummary,
  batchBytesMax,
  NewBatch,
} from './batches.schemas.ts';
import type { Batches } from './batches.ts';

const operation = { tags: ['Batches'], security: [{ apiKey: [] }] };
const params = Type.Object({ batchId: { ...Id, description: 'The id of the batch.' } });
const frameIssues = compileSchema(BatchFrame as unknown as Record<string, unknown>);

const createSchema = {
  ...operation,
  operationId: 'createBatch',
  summary: 'Run skills many times',
  description:
    'Up to 1,000 items, each judged as a request to run its skill, accepted in one transaction. A refused item does not keep the ' +
    'others from being accepted, unless atomic is true. Each item counts against the limit of the key, and nothing else does. The ' +
    'body has at most 8 MiB, the input of an item 1 MiB. Headers that an execution may have are 400, except Idempotency-Key.',
  headers: Type.Object({
    'idempotency-key': IdempotencyKey(
      'Repeats with the same key within 24 hours make no second batch.',
    ),
  }),
  body: NewBatch,
  response: {
    202: { ...AcceptedBatch, ...carries('Location', 'Idempotent-Replayed') },
    ...apiRefusals(
      'skill_not_found',
      'not_found',
      'insufficient_scope',
      ...bodyRefusals,
      'agent_paused',
      'idempotency_key_reused',
    ),
  },
};

/** Headers of an execution that have no meaning for a batch; of Prefer, a server may make nothing. */
const itemHeaders = ['x-agent-id', ...Object.keys(executionHeaders)].filter(
  (name) => name !== 'idempotency-key' && name !== 'prefer',
);

/** Throws `400` for a header that an item would have as a field. */
function refuseHeaders({ headers }: FastifyRequest): void {
  const name = itemHeaders.find((one) => headers[one] !== undefined);
  if (name !== undefined) throw invalid(name, 'is not for a batch: its items have fields instead');
}

export function batchRoutes(server: Server, batches: Batches, jobs: Jobs, limiter: RateLimiter) {
  /** An unknown batch is 404 before any other check. */
  const onRequest = lookUp('batchId', (id, { organizationId }) => batches.find(organizationId, id));
  createRoute(server, batches, limiter);
  const listSchema = {
    ...operation,
    operationId: 'listBatches',
    summary: 'List batches, newest first',
    querystring: Page,
    response: { 200: Paged(BatchSummary, 'A page of batches.'), ...apiRefusals() },
  };
  server.get('/api/batches', { schema: listSchema }, async (request) => {
    const page = request.query;
    const { batches: data, total } = await batches.list(callerOf(request).organizationId, page);
    return { data, total, ...page };
  });
  const getSchema = {
    ...operation,
    operationId: 'getBatch',
    summary: 'Get a batch with the counts of its jobs',
    params,
    response: { 200: Batch, ...apiRefusals('not_found') },
  };
  server.get('/api/batches/:batchId', { onRequest, schema: getSchema }, (request) =>
    batches.get(callerOf(request).organizationId, request.params.batchId),
  );
  const cancelSchema = {
    ...operation,
    operationId: 'cancelBatch',
    summary: 'Cancel the jobs of a batch that have not ended',
    description: 'As POST /api/jobs/cancel: where done is false, repeat it.',
    params,
    response: { 200: CancelledJobs, ...apiRefusals('not_found') },
  };
  server.post('/api/batches/:batchId/cancel', { onRequest, schema: cancelSchema }, (request) => {
    const filters = { batch_id: request.params.batchId };
    return jobs.cancelMany(callerOf(request).organizationId, { filters, isDryRun: false });
  });
  const retrySchema = {
    ...operation,
    operationId: 'retryBatch',
    summary: 'Run the failed jobs of a batch again',
    description:
      'As POST /api/jobs/retry: where done is false, repeat it; each run counts against the limit of the key. The new jobs are not part of the batch; their retry_of names the old ones.',
    params,
    response: { 200: RetriedJobs, ...apiRefusals('not_found') },
  };
  const retryOptions = { config: acceptingWork, onRequest, schema: retrySchema };
  server.post('/api/batches/:batchId/retry', retryOptions, (request, reply) => {
    const filters = { batch_id: request.params.batchId };
    const hits = new RequestHits(limiter, request, reply);
    return jobs.retryMany(callerOf(request), { filters, isDryRun: false }, hits);
  });
}

function createRoute(server: Server, batches: Batches, limiter: RateLimiter) {
  const options = {
    config: acceptingWork,
    bodyLimit: batchBytesMax,
    // Each item is judged by itself: a faulty one does not refuse the others.
    validatorCompiler: () => () => true,
    schema: createSchema,
  };
  server.post('/api/batches', options, async (request, reply) => {
    const idempotencyKey = idempotencyKeyOf(request);
    refuseHeaders(request);
    const issues = frameIssues(request.body);
    if (issues !== null) throw invalidIn(issues);
    const { items, atomic = false } = request.body;
    const hits = new RequestHits(limiter, request, reply);
    if (items.length > hits.perMinute) {
      throw invalid(
        'items',
        `must be at most ${hits.perMinute}, the requests of the key in a minute`,
      );
    }
    await hits.countTogether(items.length);
    const { batch, isReplay } = await batches.create(callerOf(request), {
      items,
      isAtomic: atomic,
      idempotencyKey,
    });
    reply.status(202).header('location', `/api/batches/${batch.id}`);
    if (isReplay) reply.header('idempotent-replayed', 'true');
    return batch;
  });
}
