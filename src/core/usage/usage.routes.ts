/**
 * The usage (`…/usage`) and budgets (`…/budget`) of agents, scheduled jobs and API keys, and the whole
 * ledger (`/admin/usage`).
 */
import type { FastifyRequest } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { adminRefusals, apiRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import { Id, Nothing } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { requireScopes } from '../../kernel/caller.ts';
import { type Budgets, budgetScopes } from './budgets.ts';
import type { NamedOwner, Owner } from './owners.ts';
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
import type { UsageLedger } from './usage.ts';

const tags = ['Usage'];
/** A hook: a key needs the scope of budgets to set or delete one. */
const writes = async (request: FastifyRequest) =>
  requireScopes(callerOf(request).scopes, budgetScopes);
const api = { security: [{ apiKey: [] }], refusals: apiRefusals, writes };
const admin = {
  security: [{ adminBearer: [] }, { adminHeader: [] }] as Subject['security'],
  refusals: adminRefusals,
};

interface UsageSlices {
  readonly usage: UsageLedger;
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
  /** Admits a caller that sets or deletes a budget; without it, all that reach the routes. */
  readonly writes?: (request: FastifyRequest) => Promise<void>;
  named(request: FastifyRequest): NamedOwner;
}

const parameter = (request: FastifyRequest, name: string) =>
  (request.params as Record<string, string>)[name] ?? '';

const agents: Subject = {
  ...api,
  path: '/api/agents/:agentId',
  params: Type.Object({ agentId: Type.String({ description: 'The id of the agent.' }) }),
  noun: 'an agent',
  owner: agentField,
  named: (request) => ({
    kind: 'agent',
    organizationId: callerOf(request).organizationId,
    id: parameter(request, 'agentId'),
  }),
};
const scheduledJobs: Subject = {
  ...api,
  path: '/api/scheduled-jobs/:jobId',
  params: Type.Object({ jobId: { ...Id, description: 'The id of the scheduled job.' } }),
  noun: 'a scheduled job',
  owner: scheduledJobField,
  named: (request) => ({
    kind: 'scheduled_job',
    organizationId: callerOf(request).organizationId,
    id: parameter(request, 'jobId'),
  }),
};
const apiKeys: Subject = {
  ...admin,
  path: '/admin/api-keys/:id',
  params: Type.Object({ id: { ...Id, description: 'The id of the API key.' } }),
  noun: 'an API key',
  owner: apiKeyField,
  named: (request) => ({ kind: 'api_key', id: parameter(request, 'id') }),
};

/** Below `/api`. */
export function usageRoutes(server: Server, parts: UsageSlices) {
  server.decorateRequest('owner', null);
  for (const subject of [agents, scheduledJobs]) ownerRoutes(server, parts, subject);
}

/** Below `/admin`. */
export function usageAdminRoutes(server: Server, parts: UsageSlices) {
  server.decorateRequest('owner', null);
  ownerRoutes(server, parts, apiKeys);
  listUsageRoute(server, parts);
}

function ownerRoutes(server: Server, parts: UsageSlices, subject: Subject) {
  usageOfRoute(server, parts, subject);
  budgetRoutes(server, parts, subject);
}

/** The owner that `lookUp` found. */
const ownerOf = (request: FastifyRequest) => (request as unknown as { owner: Owner }).owner;

/** A hook: an unknown owner is 404 before any other check (docs/decisions/order-of-checks.md). */
function lookUp({ budgets }: UsageSlices, { named }: Subject) {
  return async (request: FastifyRequest) => {
    Object.assign(request, { owner: await budgets.findOwner(named(request)) });
  };
}

function listUsageRoute(server: Server, { usage }: UsageSlices) {
  server.get(
    '/admin/usage',
    {
      schema: {
        tags,
        security: admin.security,
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
      return { ...(await usage.list(filters, { from, to }, page)), ...page };
    },
  );
}

function usageOfRoute(server: Server, parts: UsageSlices, subject: Subject) {
  const { path, params, noun, owner, security, refusals } = subject;
  server.get(
    `${path}/usage`,
    {
      onRequest: lookUp(parts, subject),
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
    (request) => parts.usage.ofOwner(ownerOf(request), request.query),
  );
}

function budgetRoutes(server: Server, parts: UsageSlices, subject: Subject) {
  const { path, params, noun, owner, security, refusals } = subject;
  const { budgets } = parts;
  const onRequest = lookUp(parts, subject);
  const admit = [onRequest, ...(subject.writes === undefined ? [] : [subject.writes])];
  const refused = subject.writes === undefined ? [] : (['insufficient_scope'] as const);
  const needs = subject.writes === undefined ? '' : ' Needs the scope budgets.';
  const url = `${path}/budget`;
  const shared = { tags, security, params };
  const budget = BudgetOf(owner);

  const getSchema = {
    ...shared,
    operationId: `get${owner.title}Budget`,
    summary: `Get the budget of ${noun}`,
    response: { 200: budget, ...refusals('not_found') },
  };
  server.get(url, { onRequest, schema: getSchema }, (request) => budgets.get(ownerOf(request)));

  const setSchema = {
    ...shared,
    operationId: `set${owner.title}Budget`,
    summary: `Set the budget of ${noun}`,
    description:
      'Replaces the whole budget; a limit that is null or omitted does not apply. It ' +
      `applies from the next call of a model on.${needs}`,
    body: BudgetFields,
    response: { 200: budget, ...refusals('not_found', ...refused, ...bodyRefusals) },
  };
  server.put(url, { onRequest: admit, schema: setSchema }, (request) =>
    budgets.put(ownerOf(request), request.body),
  );

  const deleteSchema = {
    ...shared,
    operationId: `delete${owner.title}Budget`,
    summary: `Delete the budget of ${noun}`,
    description: `Also if there is none.${needs}`,
    response: { 204: Nothing, ...refusals('not_found', ...refused) },
  };
  server.delete(url, { onRequest: admit, schema: deleteSchema }, async (request, reply) => {
    await budgets.remove(ownerOf(request));
    return reply.status(204).send(null);
  });
}
