/** `/api/agents/:agentId/memories` (specification: Agent memory; docs/decisions/memories.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { expiryOf } from '../../adapters/http/future-moment.ts';
import { apiRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import { carries, setNextOffset } from '../../adapters/http/response-headers.ts';
import {
  FilterText,
  FreeObject,
  Id,
  Name,
  Nothing,
  Nullable,
  Page,
  Paged,
  Slug,
  Timestamp,
} from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { reachesUsers, requireUsersScope } from '../../adapters/http/users-scope.ts';
import type { Clock } from '../../kernel/clock.ts';
import { longTextMax } from '../../kernel/long-text.ts';
import { defaultTag, type MemoryFields, queryCharsMax } from './fields.ts';
import type { Memories, Reach } from './memories.ts';
import type { Owning } from './owners.ts';

const operation = { tags: ['Memories'], security: [{ apiKey: [] }] };

const content = Type.String({
  minLength: 1,
  maxLength: longTextMax,
  description: 'The text: at most 64 KiB.',
});
const tag = { ...Name(), description: 'One label, to list and search by.' };
const metadata = { ...FreeObject, description: 'Further data: at most 64 KiB of JSON.' };

const expiresAt = Nullable({
  ...Timestamp,
  description: 'From then on it is not found, and it is deleted soon after; null for never.',
});

const Memory = Type.Object(
  {
    id: Id,
    agent_id: Slug,
    content,
    tag,
    metadata,
    user_id: Nullable(Type.String({ description: "Whose it is; null for the agent's own." })),
    created_at: Timestamp,
    updated_at: Timestamp,
    expires_at: expiresAt,
    source: Nullable(
      Type.Object(
        {
          job_id: Id,
          conversation_id: Id,
          step: Nullable(
            Type.Integer({
              description: 'The step of the job; null for the code of the run itself.',
            }),
          ),
          message_id: Type.Optional({
            ...Id,
            description: 'The message of the conversation that it was formed of.',
          }),
        },
        { description: 'The run that wrote the content; null where a client wrote or changed it.' },
      ),
    ),
  },
  {
    title: 'Memory',
    description: 'The memory.',
    examples: [
      {
        id: '019a9d3c-5b7e-7c41-8a2f-3d5e7f901b2c',
        agent_id: 'default',
        content: 'Ada prefers short answers.',
        tag: 'preference',
        metadata: { plan: 'team' },
        user_id: 'ada',
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:00:00.000Z',
        expires_at: null,
        source: {
          job_id: '019a9d3c-5b7e-7c41-8a2f-3d5e7f901b2a',
          conversation_id: '019a9d3c-5b7e-7c41-8a2f-3d5e7f901b2b',
          step: 2,
        },
      },
    ],
  },
);
const agentId = Type.String({ description: 'The id of the agent.' });
const agentParams = Type.Object({ agentId });
const params = Type.Object({
  agentId,
  memoryId: { ...Id, description: 'The id of the memory.' },
});

const listSchema = {
  ...operation,
  operationId: 'listMemories',
  summary: 'List or search the memories of an agent',
  description:
    'Newest first; with q the memories with any of its words, in any inflection, best first. ' +
    'Words in double quotes must stand together. Letter case and accents are ignored. ' +
    "Without user_id the agent's own memories and those of all its users; for a key without the scope " +
    "memories, the agent's own alone.",
  params: agentParams,
  querystring: Type.Object({
    tag: Type.Optional(Type.String({ maxLength: 200, description: 'Exact match.' })),
    q: Type.Optional(
      Type.String({ maxLength: queryCharsMax, description: 'Words or a question.' }),
    ),
    user_id: Type.Optional(
      FilterText("Memories of this user alone; empty for the agent's own alone."),
    ),
    ...Page.properties,
  }),
  response: {
    200: { ...Paged(Memory, 'A page of memories.'), ...carries('X-Next-Offset') },
    ...apiRefusals('not_found', 'insufficient_scope'),
  },
};
const createSchema = {
  ...operation,
  operationId: 'createMemory',
  summary: 'Add a memory to an agent',
  description: 'A memory of a user needs the scope memories.',
  params: agentParams,
  body: Type.Object(
    {
      content,
      tag: Type.Optional({ ...tag, default: defaultTag }),
      metadata: Type.Optional({ ...metadata, default: {} }),
      user_id: Type.Optional({
        ...Nullable(Name()),
        description: "The user whose memory it is; null for the agent's own.",
        default: null,
      }),
      expires_at: Type.Optional({ ...expiresAt, default: null }),
    },
    {
      title: 'NewMemory',
      additionalProperties: false,
      examples: [{ content: 'Ada prefers short answers.', tag: 'preference' }],
    },
  ),
  response: {
    201: { ...Memory, ...carries('Location') },
    ...apiRefusals('not_found', 'insufficient_scope', ...bodyRefusals),
  },
};
const getSchema = {
  ...operation,
  operationId: 'getMemory',
  summary: 'Get a memory',
  params,
  response: { 200: Memory, ...apiRefusals('not_found') },
};
const updateSchema = {
  ...operation,
  operationId: 'updateMemory',
  summary: 'Change a memory',
  description: 'Changes the given fields; metadata is replaced as a whole.',
  params,
  body: Type.Partial(Type.Object({ content, tag, metadata, expires_at: expiresAt }), {
    title: 'MemoryChanges',
    additionalProperties: false,
    examples: [{ content: 'Ada prefers very short answers.' }],
  }),
  response: { 200: Memory, ...apiRefusals('not_found', ...bodyRefusals) },
};
const deleteSchema = {
  ...operation,
  operationId: 'deleteMemory',
  summary: 'Delete a memory',
  params,
  response: { 204: Nothing, ...apiRefusals('not_found') },
};

const AgentOfUser = Type.Object(
  {
    agent_id: Slug,
    memories: Type.Integer({ description: 'How many memories of the user the agent has.' }),
    has_profile: Type.Boolean({ description: 'Whether it has a profile of the user.' }),
  },
  { title: 'AgentOfUser', examples: [{ agent_id: 'support', memories: 12, has_profile: true }] },
);
const agentsSchema = {
  ...operation,
  operationId: 'listAgentsOfUser',
  summary: 'List the agents that have memories or a profile of a user',
  description: 'By agent id. Needs the scope memories or user-data.',
  params: Type.Object({
    userId: { ...Name(), description: 'The user, as x-user-id names it.' },
  }),
  querystring: Page,
  response: {
    200: Paged(AgentOfUser, 'A page of agents, with the number of memories.'),
    ...apiRefusals('insufficient_scope'),
  },
};

/** Unknown agents and memories are 404 before anything else is checked (docs/decisions/order-of-checks.md). */
export function memoryRoutes(
  server: Server,
  { memories, clock }: { memories: Memories; clock: Clock },
): void {
  const fieldsOf = <B extends MemoryBody>(body: B) => withExpiry(body, clock.now());
  const all = '/api/agents/:agentId/memories';
  const one = `${all}/:memoryId` as const;
  const findAgent = (request: FastifyRequest) => memories.findAgent(owningOf(request));
  const findAsked = async (request: FastifyRequest) => {
    await findAgent(request);
    // The raw value: this hook runs before the query is validated.
    const { user_id: user = '' } = request.query as { user_id?: unknown };
    if (user !== '') requireUsersScope(request);
  };
  const find = (request: FastifyRequest) => {
    const { memoryId } = request.params as { memoryId: string };
    return memories.find(reachOf(request), memoryId);
  };
  server.get(all, { onRequest: findAsked, schema: listSchema }, async (request, reply) => {
    const { limit, offset, user_id: user, ...filter } = request.query;
    const page = { limit, offset };
    const whose = { ...filter, userId: user === '' ? null : (user ?? reachOf(request).userId) };
    const { memories: data, total, next } = await memories.list(owningOf(request), whose, page);
    setNextOffset(reply, next);
    return { data, total, ...page };
  });
  server.post(all, { onRequest: findAgent, schema: createSchema }, async (request, reply) => {
    const { user_id: userId, ...body } = request.body;
    if (typeof userId === 'string') requireUsersScope(request);
    const created = await memories.create(owningOf(request), fieldsOf(body), userId ?? null);
    const location = `/api/agents/${created.agent_id}/memories/${created.id}`;
    return reply.status(201).header('location', location).send(created);
  });
  server.get(one, { onRequest: find, schema: getSchema }, (request) =>
    memories.get(reachOf(request), request.params.memoryId),
  );
  server.put(one, { onRequest: find, schema: updateSchema }, (request) =>
    memories.update(reachOf(request), request.params.memoryId, fieldsOf(request.body)),
  );
  server.delete(one, { onRequest: find, schema: deleteSchema }, async (request, reply) => {
    await memories.remove(reachOf(request), request.params.memoryId);
    return reply.status(204).send(null);
  });
  const ofUsers = async (request: FastifyRequest) => requireUsersScope(request);
  const agents = { onRequest: ofUsers, schema: agentsSchema };
  server.get('/api/users/:userId/agents', agents, async (request) => {
    const { organizationId } = callerOf(request);
    const page = { limit: request.query.limit, offset: request.query.offset };
    const { userId } = request.params;
    return { ...(await memories.listAgentsOfUser(organizationId, userId, page)), ...page };
  });
}

function owningOf(request: FastifyRequest): Owning {
  const { agentId } = request.params as { agentId: string };
  return { organizationId: callerOf(request).organizationId, agentId };
}

const reachOf = (request: FastifyRequest): Reach =>
  reachesUsers(request) ? owningOf(request) : { ...owningOf(request), userId: null };

type MemoryBody = Omit<MemoryFields, 'expires_at'> & { expires_at?: string | null };

/** The fields of a body, its moment in milliseconds. */
function withExpiry<B extends MemoryBody>({ expires_at: at, ...fields }: B, now: number) {
  if (at === undefined) return fields;
  return { ...fields, expires_at: at === null ? null : expiryOf(at, now) };
}
