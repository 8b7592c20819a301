/** `/api/scheduled-jobs` (specification: Scheduled jobs; docs/decisions/schedules.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { acceptingWork, callerOf } from '../http/authenticate.ts';
import { apiRefusals, bodyRefusals } from '../http/refusals.ts';
import { carries } from '../http/response-headers.ts';
import { Defaulted, Id, IncludedRefusal, Nothing, Page, Paged } from '../http/schemas.ts';
import type { Server } from '../http/server.ts';
import type { PlatformError } from '../kernel/errors.ts';
import { cronCharactersMax } from './cron.ts';
import {
  CreatedScheduledJob,
  CronPreview,
  NewScheduledJob,
  ScheduledJob,
  ScheduledJobChanges,
  ScheduledJobList,
  ScheduledRun,
  StartedRun,
} from './schedules.schemas.ts';
import type { Schedules } from './schedules.ts';

const tags = ['Scheduled jobs'];
const security = [{ apiKey: [] }];
const Params = Type.Object({ jobId: Id });
/** The word that stands where other paths have the id of a scheduled job. */
const previewWord = 'preview';
const previewMax = 50;
const previewDefault = 5;

export function scheduledJobRoutes(
  server: Server,
  {
    schedules,
    unmatched,
  }: { schedules: Schedules; unmatched: (method: string, url: string) => PlatformError },
) {
  /** The path of the preview is no scheduled job that could be changed: it knows other methods. */
  const refusePreview = async (request: FastifyRequest) => {
    if (idOf(request) === previewWord) throw unmatched(request.method, request.originalUrl);
  };
  const idOf = (request: FastifyRequest) => (request.params as { jobId: string }).jobId;
  /** Unknown ones are 404 before the request is judged further (docs/decisions/order-of-checks.md). */
  const lookUp = async (request: FastifyRequest) => {
    await schedules.find(callerOf(request).organizationId, idOf(request));
  };
  /** A change needs the scopes of the skill as well. */
  const admitChange = async (request: FastifyRequest) => {
    await schedules.admitChange(callerOf(request), idOf(request));
  };

  server.post(
    '/api/scheduled-jobs',
    {
      schema: {
        tags,
        security,
        operationId: 'createScheduledJob',
        summary: 'Create a scheduled job',
        description:
          'Runs a skill whenever the cron expression matches, in UTC, in the name of this key.',
        body: NewScheduledJob,
        response: {
          201: { ...CreatedScheduledJob, ...carries('Location') },
          ...apiRefusals(
            'not_found',
            'skill_not_found',
            'insufficient_scope',
            'conflict',
            ...bodyRefusals,
          ),
        },
      },
    },
    async (request, reply) => {
      const created = await schedules.create(callerOf(request), request.body);
      return reply
        .status(201)
        .header('location', `/api/scheduled-jobs/${created.id}`)
        .send(created);
    },
  );

  server.get(
    '/api/scheduled-jobs',
    {
      schema: {
        tags,
        security,
        operationId: 'listScheduledJobs',
        summary: 'List all scheduled jobs, newest first',
        description: 'Where refusals are included, inputs are not checked against their skills.',
        querystring: Type.Object({ include: IncludedRefusal }),
        response: {
          200: ScheduledJobList,
          ...apiRefusals(),
        },
      },
    },
    async (request, reply) => {
      const list = request.query.include ? schedules.listWithRefusals : schedules.list;
      const found = await list(callerOf(request).organizationId);
      return reply.header('x-total-count', found.length).send(found);
    },
  );

  server.get(
    `/api/scheduled-jobs/${previewWord}`,
    {
      schema: {
        tags,
        security,
        operationId: 'previewCronExpression',
        summary: 'Show when a cron expression matches next',
        description: 'For looking before creating: nothing is kept, and nothing runs.',
        querystring: Type.Object({
          cron_expression: Type.String({
            maxLength: cronCharactersMax,
            description: 'Minute, hour, day of month, month, day of week; in UTC.',
          }),
          count: Defaulted(
            Type.Integer({ minimum: 1, maximum: previewMax, default: previewDefault }),
          ),
        }),
        response: { 200: CronPreview, ...apiRefusals() },
      },
    },
    async (request) => {
      const { cron_expression, count } = request.query;
      return schedules.preview(cron_expression, count);
    },
  );

  server.get(
    '/api/scheduled-jobs/:jobId',
    {
      schema: {
        tags,
        security,
        operationId: 'getScheduledJob',
        summary: 'Get a scheduled job',
        params: Params,
        querystring: Type.Object({ include: IncludedRefusal }),
        response: { 200: ScheduledJob, ...apiRefusals('not_found') },
      },
    },
    (request) => {
      const get = request.query.include ? schedules.getWithRefusal : schedules.get;
      return get(callerOf(request).organizationId, request.params.jobId);
    },
  );

  server.put(
    '/api/scheduled-jobs/:jobId',
    {
      onRequest: [refusePreview, admitChange],
      schema: {
        tags,
        security,
        operationId: 'updateScheduledJob',
        summary: 'Change, disable or enable a scheduled job',
        description:
          'Only what the body names changes; input replaces the stored one. It needs the scopes ' +
          'of the skill before and after the change. Disabling ends what waits of its runs.',
        params: Params,
        body: ScheduledJobChanges,
        response: {
          200: ScheduledJob,
          ...apiRefusals(
            'not_found',
            'skill_not_found',
            'insufficient_scope',
            'conflict',
            ...bodyRefusals,
          ),
        },
      },
    },
    (request) => schedules.update(callerOf(request), request.params.jobId, request.body),
  );

  server.delete(
    '/api/scheduled-jobs/:jobId',
    {
      onRequest: [refusePreview, lookUp],
      schema: {
        tags,
        security,
        operationId: 'deleteScheduledJob',
        summary: 'Delete a scheduled job',
        description: 'Nothing further runs; a run that is under way ends its attempt.',
        params: Params,
        response: { 204: Nothing, ...apiRefusals('not_found') },
      },
    },
    async (request, reply) => {
      await schedules.remove(callerOf(request).organizationId, request.params.jobId);
      return reply.status(204).send(null);
    },
  );

  server.post(
    '/api/scheduled-jobs/:jobId/run',
    {
      config: acceptingWork,
      onRequest: lookUp,
      schema: {
        tags,
        security,
        operationId: 'runScheduledJob',
        summary: 'Run a scheduled job at once',
        description: 'In the name of the key that asks; a disabled one runs as well.',
        params: Params,
        response: {
          202: { ...StartedRun, ...carries('Location') },
          ...apiRefusals('not_found', 'skill_not_found', 'insufficient_scope', 'agent_paused'),
        },
      },
    },
    async (request, reply) => {
      const job = await schedules.runNow(callerOf(request), request.params.jobId);
      return reply.status(202).header('location', `/api/jobs/${job.job_id}`).send(job);
    },
  );

  server.get(
    '/api/scheduled-jobs/:jobId/runs',
    {
      onRequest: lookUp,
      schema: {
        tags,
        security,
        operationId: 'listScheduledRuns',
        summary: 'List what became of each slot, newest first',
        params: Params,
        querystring: Page,
        response: {
          200: Paged(ScheduledRun, 'A page of runs.'),
          ...apiRefusals('not_found'),
        },
      },
    },
    async (request) => {
      const { organizationId } = callerOf(request);
      const { params, query: page } = request;
      const { runs: data, total } = await schedules.runs(organizationId, params.jobId, page);
      return { data, total, ...page };
    },
  );
}
