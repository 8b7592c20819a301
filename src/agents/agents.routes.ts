/** `/api/agents` (docs/decisions/agents.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../http/authenticate.ts';
import { apiRefusals, bodyRefusals } from '../http/refusals.ts';
import { carries, tellNext } from '../http/response-headers.ts';
import { Nothing, Page, Paged } from '../http/schemas.ts';
import type { Server } from '../http/server.ts';
import { unknownFirst } from '../http/unknown-first.ts';
import { refuseLong } from '../kernel/long-text.ts';
import type { AgentFields } from './agent-rows.ts';
import { Agent, AgentChanges, NewAgent } from './agents.schemas.ts';
import type { Agents } from './agents.ts';

const operation = { tags: ['Agents'], security: [{ apiKey: [] }] };

const params = Type.Object({ agentId: Type.String({ description: 'The id of the agent.' }) });

const createSchema = {
  ...operation,
  operationId: 'createAgent',
  summary: 'Create an agent',
  body: NewAgent,
  response: {
    201: { ...Agent, ...carries('Location') },
    ...apiRefusals('conflict', ...bodyRefusals),
  },
};
const listSchema = {
  ...operation,
  operationId: 'listAgents',
  summary: 'List agents, newest first',
  querystring: Page,
  response: {
    200: { ...Paged(Agent, 'A page of agents.'), ...carries('X-Next-Offset') },
    ...apiRefusals(),
  },
};
const getSchema = {
  ...operation,
  operationId: 'getAgent',
  summary: 'Get an agent',
  params,
  response: { 200: Agent, ...apiRefusals('not_found') },
};
const updateSchema = {
  ...operation,
  operationId: 'updateAgent',
  summary: 'Change an agent, pause or resume it',
  description: 'Changes the given fields. A paused agent takes no new work.',
  params,
  body: AgentChanges,
  response: { 200: Agent, ...apiRefusals('not_found', ...bodyRefusals) },
};
const deleteSchema = {
  ...operation,
  operationId: 'deleteAgent',
  summary: 'Delete an agent',
  params,
  response: { 204: Nothing, ...apiRefusals('not_found', 'conflict') },
};

export function agentRoutes(server: Server, { agents }: { agents: Agents }): void {
  /** An unknown agent is 404 before the body is validated (docs/decisions/order-of-checks.md). */
  const lookUp = async (request: FastifyRequest) => {
    const { agentId } = request.params as { agentId: string };
    await agents.find(callerOf(request).organizationId, agentId);
  };
  server.post('/api/agents', { schema: createSchema }, async (request, reply) => {
    const created = await agents.create(callerOf(request).organizationId, checked(request.body));
    return reply.status(201).header('location', `/api/agents/${created.id}`).send(created);
  });
  server.get('/api/agents', { schema: listSchema }, async (request, reply) => {
    const { query: page } = request;
    const { organizationId } = callerOf(request);
    const { agents: data, total, next } = await agents.list(organizationId, page);
    tellNext(reply, next);
    return { data, total, ...page };
  });
  const getOptions = { errorHandler: unknownFirst(lookUp), schema: getSchema };
  server.get('/api/agents/:agentId', getOptions, (request) =>
    agents.get(callerOf(request).organizationId, request.params.agentId),
  );
  const updateOptions = { onRequest: lookUp, schema: updateSchema };
  server.put('/api/agents/:agentId', updateOptions, (request) => {
    const { organizationId } = callerOf(request);
    return agents.update(organizationId, request.params.agentId, checked(request.body));
  });
  const deleteOptions = { onRequest: lookUp, schema: deleteSchema };
  server.delete('/api/agents/:agentId', deleteOptions, async (request, reply) => {
    await agents.remove(callerOf(request).organizationId, request.params.agentId);
    return reply.status(204).send(null);
  });
}

/** Checks the limits in bytes, which a JSON Schema cannot express. */
function checked<T extends AgentFields>(body: T): T {
  refuseLong('description', body.description ?? '');
  refuseLong('instructions', body.instructions ?? '');
  refuseLong('metadata', JSON.stringify(body.metadata ?? {}));
  return body;
}
