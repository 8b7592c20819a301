/** `/api/scheduled-jobs` (specification: Scheduled jobs; docs/decisions/schedules.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { acceptingWork, callerOf } from '../../adapters/http/authenticate.ts';
import { IdempotencyKey, idempotencyKeyOf } from '../../adapters/http/idempotency-key.ts';
import { lookUp } from '../../adapters/http/look-up.ts';
import { apiRefusals, workRefusals } from '../../adapters/http/refusals.ts';
import { carries } from '../../adapters/http/response-headers.ts';
import {
  Defaulted,
  Id,
  IncludedRefusal,
  Nothing,
  Page,
  Paged,
} from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { unknownFirst } from '../../adapters/http/unknown-first.ts';
import type { PlatformError } from '../../kernel/errors.ts';
import { utc } from '../../kernel/zones.ts';
import {
  CreatedScheduledJob,
  CronExpression,
  CronPreview,
  NewScheduledJob,
  ScheduledJob,
  ScheduledJobChanges,
  ScheduledJobList,
  ScheduledRun,
  StartedRun,
  Timezone,
} from './schedules.schemas.ts';
import type { Schedules } from './schedules.ts';

const operation = { tags: ['Scheduled jobs'], security: [{ apiKey: [] }] };
const collection = '/api/scheduled-jobs';
const one = `${collection}/:jobId` as const;
const params = Type.Object({ jobId: { ...Id, description: 'The id of the scheduled job.' } });
/** The path segment of the preview, in the place of a scheduled job's id. */
const previewWord = 'preview';

/** The refusal of a request that no route matches. */
type Unmatched = (method: string, url: string) => PlatformError;

export function scheduledJobRoutes(server: Server, schedules: Schedules, unmatched: Unmatched) {
  createRoute(server, schedules);
  listRoute(server, schedules);
  previewRoute(server, schedules);
  getRoute(server, schedules);
  updateRoute(server, schedules, unmatched);
  removeRoute(server, schedules, unmatched);
  runRoute(server, schedules);
  listRunsRoute(server, schedules);
}

const idOf = (request: FastifyRequest) => (request.params as { jobId: string }).jobId;

/** Unknown scheduled jobs are 404 before any other check (docs/decisions/order-of-checks.md). */
const requireScheduledJob = (schedules: Schedules) =>
  lookUp('jobId', (id, { organizationId }) => schedules.find(organizationId, id));

/** Refuses other methods on the path of the preview with `405`, because it is not a scheduled job. */
const refusePreview = (unmatched: Unmatched) => async (request: FastifyRequest) => {
  if (idOf(request) === previewWord) throw unmatched(request.method, request.originalUrl);
};

function createRoute(server: Server, schedules: Schedules) {
  const schema = {
    ...operation,
    operationId: 'createScheduledJob',
    summary: 'Create a scheduled job',
    description:
      'Runs a skill whenever the cron expression matches, in its time zone or in UTC, with this key, which needs the scopes of the skill.',
    body: NewScheduledJob,
    response: {
      201: { ...CreatedScheduledJob, ...carries('Location') },
      ...apiRefusals(...workRefusals, 'conflict'),
    },
  };
  server.post(collection, { schema }, async (request, reply) => {
    const created = await schedules.create(callerOf(request), request.body);
    return reply.status(201).header('location', `${collection}/${created.id}`).send(created);
  });
}

function listRoute(server: Server, schedules: Schedules) {
  const schema = {
    ...operation,
    operationId: 'listScheduledJobs',
    summary: 'List all scheduled jobs, newest first',
    description: 'Refusals in the list do not check inputs against their skills.',
    querystring: Type.Object({ include: IncludedRefusal }),
    response: { 200: ScheduledJobList, ...apiRefusals() },
  };
  server.get(collection, { schema }, async (request, reply) => {
    const { organizationId } = callerOf(request);
    const found = await schedules.list(organizationId, request.query.include);
    return reply.header('x-total-count', found.length).send(found);
  });
}

function previewRoute(server: Server, schedules: Schedules) {
  const schema = {
    ...operation,
    operationId: 'previewCronExpression',
    summary: 'Show when a cron expression matches next',
    description: 'A preview: nothing is stored, and nothing runs.',
    querystring: Type.Object({
      cron_expression: CronExpression,
      timezone: Defaulted({ ...Timezone, default: utc }),
      count: Defaulted(
        Type.Integer({
          ...{ minimum: 1, maximum: 50, default: 5 },
          description: 'How many matches to show.',
        }),
      ),
    }),
    response: { 200: CronPreview, ...apiRefusals() },
  };
  server.get(`${collection}/${previewWord}`, { schema }, async ({ query }) =>
    schedules.preview(query.cron_expression, query.timezone, query.count),
  );
}

function getRoute(server: Server, schedules: Schedules) {
  const schema = {
    ...operation,
    operationId: 'getScheduledJob',
    summary: 'Get a scheduled job',
    params,
    querystring: Type.Object({ include: IncludedRefusal }),
    response: { 200: ScheduledJob, ...apiRefusals('not_found') },
  };
  const errorHandler = unknownFirst(requireScheduledJob(schedules));
  server.get(one, { errorHandler, schema }, (request) => {
    const { organizationId } = callerOf(request);
    return schedules.get(organizationId, request.params.jobId, request.query.include);
  });
}

function updateRoute(server: Server, schedules: Schedules, unmatched: Unmatched) {
  /** A change needs the scopes of the skill as well. */
  const admitChange = async (request: FastifyRequest) => {
    await schedules.admitChange(callerOf(request), idOf(request));
  };
  const schema = {
    ...operation,
    operationId: 'updateScheduledJob',
    summary: 'Change, disable or enable a scheduled job',
    description:
      'Changes the given fields; input is replaced as a whole. The key needs the ' +
      'scopes of the skill before and after the change. Where agent, skill or input change, runs use this key ' +
      'from then on. Disabling cancels queued runs.',
    params,
    body: ScheduledJobChanges,
    response: {
      200: ScheduledJob,
      ...apiRefusals(...workRefusals, 'conflict'),
    },
  };
  const onRequest = [refusePreview(unmatched), admitChange];
  server.put(one, { onRequest, schema }, (request) =>
    schedules.update(callerOf(request), request.params.jobId, request.body),
  );
}

function removeRoute(server: Server, schedules: Schedules, unmatched: Unmatched) {
  const schema = {
    ...operation,
    operationId: 'deleteScheduledJob',
    summary: 'Delete a scheduled job',
    description:
      'Queued runs are cancelled; an active attempt finishes. One with a budget needs the scope budgets.',
    params,
    response: { 204: Nothing, ...apiRefusals('not_found', 'insufficient_scope') },
  };
  const onRequest = [refusePreview(unmatched), requireScheduledJob(schedules)];
  server.delete(one, { onRequest, schema }, async (request, reply) => {
    await schedules.remove(callerOf(request), request.params.jobId);
    return reply.status(204).send(null);
  });
}

function runRoute(server: Server, schedules: Schedules) {
  const schema = {
    ...operation,
    operationId: 'runScheduledJob',
    summary: 'Run a scheduled job at once',
    description:
      'Uses the key of the request, which needs the scopes of the skill; a disabled one runs as well.',
    params,
    headers: Type.Object({
      'idempotency-key': IdempotencyKey(
        'Repeats with the same key within 24 hours make no second run.',
      ),
    }),
    response: {
      202: { ...StartedRun, ...carries('Location', 'Idempotent-Replayed') },
      ...apiRefusals(
        'not_found',
        'skill_not_found',
        'insufficient_scope',
        'agent_paused',
        'idempotency_key_reused',
      ),
    },
  };
  const options = { config: acceptingWork, onRequest: requireScheduledJob(schedules), schema };
  server.post(`${one}/run`, options, async (request, reply) => {
    const key = idempotencyKeyOf(request);
    const { job, isReplay } = await schedules.runNow(callerOf(request), request.params.jobId, key);
    if (isReplay) reply.header('idempotent-replayed', 'true');
    return reply.status(202).header('location', `/api/jobs/${job.job_id}`).send(job);
  });
}

function listRunsRoute(server: Server, schedules: Schedules) {
  const schema = {
    ...operation,
    operationId: 'listScheduledRuns',
    summary: 'List the slots with their outcomes, newest first',
    params,
    querystring: Page,
    response: { 200: Paged(ScheduledRun, 'A page of runs.'), ...apiRefusals('not_found') },
  };
  const options = { errorHandler: unknownFirst(requireScheduledJob(schedules)), schema };
  server.get(`${one}/runs`, options, async (request) => {
    const { params, query: page } = request;
    const { organizationId } = callerOf(request);
    return { ...(await schedules.runs(organizationId, params.jobId, page)), ...page };
  });
}
