/** `/api/agents/:agentId/profiles/:userId`: what an agent always knows of a user (docs/memories.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { apiRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import { Id, Name, Nothing, Nullable, Slug, Timestamp } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { requireUsersScope } from '../../adapters/http/users-scope.ts';
import { type OfProfile, type Profiles, profileCharactersMax } from './profiles.ts';

const operation = { tags: ['Memories'], security: [{ apiKey: [] }] };
const params = Type.Object({
  agentId: Type.String({ description: 'The id of the agent.' }),
  userId: { ...Name(), description: 'The user, as x-user-id names it.' },
});
const content = Type.String({
  maxLength: profileCharactersMax,
  description: "The text: at most as many bytes as the agent's profile says, 4,096 by default.",
});

const Profile = Type.Object(
  {
    agent_id: Slug,
    user_id: Type.String(),
    content,
    version: Type.Integer({ description: 'Counts its changes, from 1; 0 where there is none.' }),
    created_at: Nullable(Timestamp),
    updated_at: Nullable(Timestamp),
    source: Nullable(
      Type.Object(
        { job_id: Id, conversation_id: Id },
        { description: 'The run that wrote it last; null where a client did.' },
      ),
    ),
  },
  {
    title: 'Profile',
    description: 'The profile.',
    examples: [
      {
        agent_id: 'support',
        user_id: 'ada',
        content: 'Name: Ada\nPrefers short answers.',
        version: 3,
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-02T00:00:00.000Z',
        source: null,
      },
    ],
  },
);

const getSchema = {
  ...operation,
  operationId: 'getProfile',
  summary: 'Get the profile of a user',
  description:
    'What the agent always knows of the user; an empty one of the version 0 where it has none. Needs the scope memories or user-data.',
  params,
  response: { 200: Profile, ...apiRefusals('not_found', 'insufficient_scope') },
};
const putSchema = {
  ...operation,
  operationId: 'putProfile',
  summary: 'Write the profile of a user',
  description:
    'Replaces the whole text. With version only where that is its present version, 0 for none yet; else 409 conflict. Needs the scope memories or user-data.',
  params,
  body: Type.Object(
    {
      content: { ...content, minLength: 1 },
      version: Type.Optional(
        Type.Integer({ minimum: 0, description: 'The version that the change is made of.' }),
      ),
    },
    {
      title: 'ProfileChange',
      additionalProperties: false,
      examples: [{ content: 'Name: Ada\nPrefers short answers.', version: 2 }],
    },
  ),
  response: {
    200: Profile,
    ...apiRefusals('not_found', 'insufficient_scope', 'conflict', ...bodyRefusals),
  },
};
const deleteSchema = {
  ...operation,
  operationId: 'deleteProfile',
  summary: 'Delete the profile of a user',
  description: 'Needs the scope memories or user-data.',
  params,
  response: { 204: Nothing, ...apiRefusals('not_found', 'insufficient_scope') },
};

/** An unknown agent is 404 before a missing scope is 403 (docs/decisions/order-of-checks.md). */
export function profileRoutes(server: Server, profiles: Profiles): void {
  const path = '/api/agents/:agentId/profiles/:userId';
  const onRequest = async (request: FastifyRequest) => {
    await profiles.findAgent(profileIn(request));
    requireUsersScope(request);
  };
  server.get(path, { onRequest, schema: getSchema }, (request) => profiles.get(profileIn(request)));
  server.put(path, { onRequest, schema: putSchema }, (request) => {
    const { content: text, version } = request.body;
    return profiles.put(profileIn(request), text, version);
  });
  server.delete(path, { onRequest, schema: deleteSchema }, async (request, reply) => {
    await profiles.remove(profileIn(request));
    return reply.status(204).send(null);
  });
}

function profileIn(request: FastifyRequest): OfProfile {
  const { agentId, userId } = request.params as { agentId: string; userId: string };
  return { organizationId: callerOf(request).organizationId, agentId, userId };
}
