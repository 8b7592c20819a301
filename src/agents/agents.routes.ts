/** `/api/agents` (docs/decisions/agents.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../http/authenticate.ts';
import { apiRefusals, bodyRefusals } from '../http/refusals.ts';
import { carries, tellNext } from '../http/response-headers.ts';
import {
  FreeObject,
  Name,
  Nothing,
  Nullable,
  Page,
  Paged,
  Slug,
  Timestamp,
  Words,
} from '../http/schemas.ts';
import type { Server } from '../http/server.ts';
import { unknownFirst } from '../http/unknown-first.ts';
import { longTextMax, refuseLong } from '../kernel/long-text.ts';
import type { AgentFields, Agents } from './agents.ts';

const operation = { tags: ['Agents'], security: [{ apiKey: [] }] };

/** Patterns of skills: `*`, `web/*`, `text/v1.0`, `text/v1.0/summarize` (docs/decisions/agents.md). */
const Patterns = (description: string) =>
  Type.Array(
    Type.String({
      pattern: '^(\\*|[a-z0-9][a-z0-9-]*)(/(\\*|v[0-9]+\\.[0-9]+)(/(\\*|[a-z0-9][a-z0-9-]*))?)?$',
      maxLength: 200,
    }),
    { maxItems: 200, uniqueItems: true, description },
  );

const fields = {
  name: Name(),
  description: Type.String({ maxLength: longTextMax }),
  status: Words(['active', 'paused']),
  instructions: Type.String({ maxLength: longTextMax, description: 'The system prompt.' }),
  model: Nullable(
    Type.String({ pattern: '^[^/\\s]+/\\S+$', maxLength: 200, description: 'provider/model' }),
  ),
  skills: Patterns('Skills that the agent may call as tools: web/* or text/v1.0/summarize.'),
  approvals: Patterns(
    'Skills whose call as a tool waits for a person who approves it: web/v1.0/http-request.',
  ),
  agents: Type.Array(Slug, {
    maxItems: 50,
    uniqueItems: true,
    description:
      'Ids of agents that it may give tasks to as tools. None of them may lead back to the agent.',
  }),
  metadata: FreeObject,
};
const Agent = Type.Object(
  { id: Slug, ...fields, created_at: Timestamp, updated_at: Timestamp },
  {
    title: 'Agent',
    description: 'The agent.',
    examples: [
      {
        id: 'support',
        name: 'Support',
        description: 'Answers customers.',
        status: 'active',
        instructions: '',
        model: null,
        skills: ['web/*', 'text/v1.0/word-count'],
        approvals: ['web/v1.0/http-request'],
        agents: ['researcher'],
        metadata: {},
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:00:00.000Z',
      },
    ],
  },
);
const optionalFields = Type.Partial(Type.Object(fields)).properties;
const params = Type.Object({ agentId: Type.String({ description: 'The id of the agent.' }) });

const createSchema = {
  ...operation,
  operationId: 'createAgent',
  summary: 'Create an agent',
  body: Type.Object(
    { id: Type.Optional(Slug), ...optionalFields },
    {
      title: 'NewAgent',
      additionalProperties: false,
      examples: [{ id: 'support', name: 'Support' }],
    },
  ),
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
  body: Type.Object(optionalFields, {
    title: 'AgentChanges',
    additionalProperties: false,
    examples: [{ status: 'paused' }],
  }),
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
