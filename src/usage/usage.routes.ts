/**
 * The usage (`…/usage`) and budgets (`…/budget`) of agents, scheduled jobs and API keys, and the whole
 * ledger (`/admin/usage`).
 */
import type { FastifyRequest } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { callerOf } from '../http/authenticate.ts';
import { adminRefusals, apiRefusals, bodyRefusals } from '../http/refusals.ts';
import { Id, Nothing } from '../http/schemas.ts';
import type { Server } from '../http/server.ts';
import type { Budgets } from './budgets.ts';
import type { NamedOwner } from './owners.ts';
import {
  agentField,
  apiKeyField,
  BudgetFields,
  BudgetOf,
  DaysQuery,
  type OwnerField,
  scheduledJobField,
  UsageFilters,
  UsageOf,
  UsagePage,
} from './usage.schemas.ts';
import type { Usage } from './usage.ts';

const tags = ['Usage'];
const apiSecurity = [{ apiKey: [] }];
const adminSecurity: Subject['security'] = [{ adminBearer: [] }, { adminHeader: [] }];

interface Parts {
  readonly usage: Usage;
  readonly budgets: Budgets;
}

/** A kind of owner: the path of its routes, and how a request names it. */
interface Subject {
  readonly path: string;
  readonly params: TSchema;
  readonly noun: string;
  readonly owner: OwnerField;
  readonly security: readonly Record<string, string[]>[];
  readonly refusals: typeof apiRefusals;
  named(request: FastifyRequest): NamedOwner;
}

const parameter = (request: FastifyRequest, name: string) =>
  (request.params as Record<string, string>)[name] ?? '';

const agents: Subject = {
  path: '/api/agents/:agentId',
  params: Type.Object({ agentId: Type.String() }),
  noun: 'an agent',
  owner: agentField,
  security: apiSecurity,
  refusals: apiRefusals,
  named: (request) => ({
    kind: 'agent',
    organizationId: callerOf(request).organizationId,
    id: parameter(request, 'agentId'),
  }),
};
const scheduledJobs: Subject = {
  path: '/api/scheduled-jobs/:jobId',
  params: Type.Object({ jobId: Id }),
  noun: 'a scheduled job',
  owner: scheduledJobField,
  security: apiSecurity,
  refusals: apiRefusals,
  named: (request) => ({
    kind: 'scheduled_job',
    organizationId: callerOf(request).organizationId,
    id: parameter(request, 'jobId'),
  }),
};
const apiKeys: Subject = {
  path: '/admin/api-keys/:id',
  params: Type.Object({ id: Id }),
  noun: 'an API key',
  owner: apiKeyField,
  security: adminSecurity,
  refusals: adminRefusals,
  named: (request) => ({ kind: 'api_key', id: parameter(request, 'id') }),
};

/** Below `/api`. */
export function usageRoutes(server: Server, parts: Parts) {
  for (const subject of [agents, scheduledJobs]) {
    usageOfRoute(server, parts, subject);
    budgetRoutes(server, parts, subject);
  }
}

/** Below `/admin`. */
export function usageAdminRoutes(server: Server, parts: Parts) {
  usageOfRoute(server, parts, apiKeys);
  budgetRoutes(server, parts, apiKeys);

  server.get(
    '/admin/usage',
    {
      schema: {
        tags,
        security: adminSecurity,
        operationId: 'listUsage',
        summary: 'List the usage by day and owner',
        description:
          'Newest first, at most 400 days, by default the last 30. A call is counted for ' +
          'its agent, its key and its scheduled job, so sum over one owner_kind only.',
        querystring: UsageFilters,
        response: { 200: UsagePage, ...adminRefusals() },
      },
    },
    async (request) => {
      const { from, to, limit, offset, ...filters } = request.query;
      const page = { limit, offset };
      const { data, total } = await parts.usage.list(filters, { from, to }, page);
      return { data, total, ...page };
    },
  );
}

function usageOfRoute(server: Server, { usage }: Parts, subject: Subject) {
  const { path, params, noun, owner, security, refusals, named } = subject;
  server.get(
    `${path}/usage`,
    {
      onRequest: (request) => usage.find(named(request)),
      schema: {
        tags,
        security,
        operationId: `get${owner.title}Usage`,
        summary: `Get the tokens that ${noun} has used, by day`,
        description: 'At most 400 days, by default the last 30. Days are in UTC.',
        params,
        querystring: Type.Object(DaysQuery),
        response: { 200: UsageOf(owner), ...refusals('not_found') },
      },
    },
    (request) => usage.ofOwner(named(request), request.query),
  );
}

function budgetRoutes(server: Server, { usage, budgets }: Parts, subject: Subject) {
  const { path, params, noun, owner, security, refusals, named } = subject;
  /** An unknown owner is 404 before the body is validated (docs/decisions/order-of-checks.md). */
  const onRequest = (request: FastifyRequest) => usage.find(named(request));
  const budget = BudgetOf(owner);

  server.get(
    `${path}/budget`,
    {
      onRequest,
      schema: {
        tags,
        security,
        operationId: `get${owner.title}Budget`,
        summary: `Get the budget of ${noun}`,
        params,
        response: { 200: budget, ...refusals('not_found') },
      },
    },
    (request) => budgets.get(named(request)),
  );

  server.put(
    `${path}/budget`,
    {
      onRequest,
      schema: {
        tags,
        security,
        operationId: `set${owner.title}Budget`,
        summary: `Set the budget of ${noun}`,
        description:
          'Replaces the whole budget; a limit that is null or omitted does not apply. It ' +
          'applies from the next call of a model on.',
        params,
        body: BudgetFields,
        response: { 200: budget, ...refusals('not_found', ...bodyRefusals) },
      },
    },
    (request) => budgets.put(named(request), request.body),
  );

  server.delete(
    `${path}/budget`,
    {
      onRequest,
      schema: {
        tags,
        security,
        operationId: `delete${owner.title}Budget`,
        summary: `Delete the budget of ${noun}`,
        description: 'Also if there is none.',
        params,
        response: { 204: Nothing, ...refusals('not_found') },
      },
    },
    async (request, reply) => {
      await budgets.remove(named(request));
      return reply.status(204).send(null);
    },
  );
}
