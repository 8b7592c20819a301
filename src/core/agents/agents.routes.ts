/** `/api/agents` (docs/decisions/agents.md). */
import { Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { lookUp } from '../../adapters/http/look-up.ts';
import { apiRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import { carries, setNextOffset } from '../../adapters/http/response-headers.ts';
import { Nothing, Page, Paged, Words } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { unknownFirst } from '../../adapters/http/unknown-first.ts';
import { refuseLong } from '../../kernel/long-text.ts';
import type { AgentFields } from './agent-rows.ts';
import { Agent, AgentChanges, NewAgent, SavedAgent, ShownAgent } from './agents.schemas.ts';
import type { Agents } from './agents.ts';
import { refusePatterns } from './skill-patterns.ts';

const operation = { tags: ['Agents'], security: [{ apiKey: [] }] };

/** The scopes of a writer of an agent, as the end of a sentence. */
const covering =
  'scopes that cover its skills: the category of each pattern, or * for a wildcard category, and the required_scopes of ' +
  'each skill that matches now; with agents also the scope agent, and the same for these agents.';

const params = Type.Object({ agentId: Type.String({ description: 'The id of the agent.' }) });

const createSchema = {
  ...operation,
  operationId: 'createAgent',
  summary: 'Create an agent',
  description: `Needs ${covering} With approvals, tool_rules or guards it needs the scope approvals too.`,
  body: NewAgent,
  response: {
    201: { ...SavedAgent, ...carries('Location') },
    ...apiRefusals('insufficient_scope', 'conflict', ...bodyRefusals),
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
  querystring: Type.Object({
    include: Type.Optional({
      ...Words(['missing_scopes']),
      description: 'missing_scopes: adds the scopes that this key lacks to change the agent.',
    }),
  }),
  response: { 200: ShownAgent, ...apiRefusals('not_found') },
};
const updateSchema = {
  ...operation,
  operationId: 'updateAgent',
  summary: 'Change an agent, pause or resume it',
  description:
    'Changes the given fields. A paused agent takes no new work. Pausing and resuming need no scope. Any other change ' +
    `needs, for the agent before it and after it, ${covering} A change of approvals, tool_rules or guards needs the scope approvals too.`,
  params,
  body: AgentChanges,
  response: { 200: SavedAgent, ...apiRefusals('not_found', 'insufficient_scope', ...bodyRefusals) },
};
const deleteSchema = {
  ...operation,
  operationId: 'deleteAgent',
  summary: 'Delete an agent',
  description: `Needs ${covering} An agent with approvals, tool_rules or guards needs the scope approvals too, one with a budget budgets.`,
  params,
  response: { 204: Nothing, ...apiRefusals('not_found', 'insufficient_scope', 'conflict') },
};

export function agentRoutes(server: Server, { agents }: { agents: Agents }): void {
  /** An unknown agent is 404 before the body is validated (docs/decisions/order-of-checks.md). */
  const onRequest = lookUp('agentId', (id, { organizationId }) => agents.find(organizationId, id));
  const preValidation = async ({ body }: { body: unknown }) => refusePatterns(body);
  server.post('/api/agents', { preValidation, schema: createSchema }, async (request, reply) => {
    const created = await agents.create(callerOf(request), checked(request.body));
    return reply.status(201).header('location', `/api/agents/${created.id}`).send(created);
  });
  server.get('/api/agents', { schema: listSchema }, async (request, reply) => {
    const { query: page } = request;
    const { organizationId } = callerOf(request);
    const { agents: data, total, next } = await agents.list(organizationId, page);
    setNextOffset(reply, next);
    return { data, total, ...page };
  });
  const getOptions = { errorHandler: unknownFirst(onRequest), schema: getSchema };
  server.get('/api/agents/:agentId', getOptions, async (request) => {
    const caller = callerOf(request);
    const { agentId } = request.params;
    const agent = await agents.get(caller.organizationId, agentId);
    if (request.query.include === undefined) return agent;
    return { ...agent, missing_scopes: await agents.missingScopesOf(caller, agentId) };
  });
  const updateOptions = { onRequest, preValidation, schema: updateSchema };
  server.put('/api/agents/:agentId', updateOptions, (request) => {
    return agents.update(callerOf(request), request.params.agentId, checked(request.body));
  });
  const deleteOptions = { onRequest, schema: deleteSchema };
  server.delete('/api/agents/:agentId', deleteOptions, async (request, reply) => {
    await agents.remove(callerOf(request), request.params.agentId);
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
