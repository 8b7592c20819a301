/** `/api/agent-triggers` (docs/decisions/triggers.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../http/authenticate.ts';
import { apiRefusals, bodyRefusals } from '../http/refusals.ts';
import { carries, tellNext } from '../http/response-headers.ts';
import {
  FreeObject,
  Id,
  IncludedRefusal,
  Name,
  Nothing,
  Nullable,
  optionalRefusal,
  Page,
  Paged,
  Timestamp,
  Words,
} from '../http/schemas.ts';
import type { Server } from '../http/server.ts';
import { type ErrorCode, errorStatuses, invalid } from '../kernel/errors.ts';
import { refuseLong } from '../kernel/long-text.ts';
import { secretFault } from '../kernel/webhook-signature.ts';
import type { TriggerCalls } from './calls.ts';
import type { TriggerFields, Triggers } from './triggers.ts';

const tags = ['Triggers'];
const security = [{ apiKey: [] }];

/** Bytes of a mapping. */
const mappingMax = 8_192;

const fields = {
  agent_id: Name(),
  name: Name(),
  skill_category: Name(),
  skill_name: Name(),
  skill_version: Name(),
  input: { ...FreeObject, description: 'Merged under what the mapping gives.' },
  mapping: Nullable(
    Type.String({
      minLength: 1,
      maxLength: mappingMax,
      description: 'JSONata from {body, headers, query} to the input of the skill; null: the body.',
    }),
  ),
  rate_limit: Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'Calls per minute.' }),
  active: Type.Boolean(),
};
const SigningSecret = Nullable(
  Type.String({
    minLength: 16,
    maxLength: 200,
    description: 'Calls have to be signed with it; null: they need not be signed.',
  }),
);

const shownFields = {
  id: Id,
  agent_id: fields.agent_id,
  name: fields.name,
  skill_category: fields.skill_category,
  skill_name: fields.skill_name,
  skill_version: fields.skill_version,
  input: fields.input,
  mapping: fields.mapping,
  rate_limit: fields.rate_limit,
  has_signing_secret: Type.Boolean({ description: 'Whether calls have to be signed.' }),
  active: fields.active,
  created_at: Timestamp,
  updated_at: Timestamp,
};
const example = {
  id: '019ab0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1',
  agent_id: 'default',
  name: 'Pushes to the handbook',
  skill_category: 'text',
  skill_name: 'word-count',
  skill_version: 'v1.0',
  input: {},
  mapping: '{"text": body.head_commit.message}',
  rate_limit: 60,
  has_signing_secret: true,
  active: true,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};
const Trigger = Type.Object(
  { ...shownFields, ...optionalRefusal },
  {
    title: 'AgentTrigger',
    description: 'The trigger.',
    examples: [example],
  },
);
const token = `trg_${'x'.repeat(43)}`;
const CreatedTrigger = Type.Object(
  {
    ...shownFields,
    token: Type.String({ description: 'Shown here and never again.' }),
    url: Type.String({ description: 'Where to send calls.' }),
  },
  {
    title: 'CreatedAgentTrigger',
    description: 'The trigger, with the address that it is called at.',
    examples: [
      { ...example, token, url: `https://skills.example.com/api/webhooks/agent/${token}` },
    ],
  },
);
const optionalFields = {
  skill_version: Type.Optional({ ...fields.skill_version, default: 'v1.0' }),
  input: Type.Optional(fields.input),
  mapping: Type.Optional(fields.mapping),
  rate_limit: Type.Optional({ ...fields.rate_limit, default: 60 }),
  signing_secret: Type.Optional(SigningSecret),
  active: Type.Optional({ ...fields.active, default: true }),
};
const Params = Type.Object({ triggerId: Type.String() });

const TriggerCall = Type.Object(
  {
    id: Id,
    received_at: Timestamp,
    status: Type.Integer({ description: 'HTTP status that it was answered with.' }),
    error: Nullable(Words(Object.keys(errorStatuses) as ErrorCode[])),
    message: Nullable(
      Type.String({
        description: 'Why it was refused; of some 404, what the sender was not told.',
      }),
    ),
    job_id: Nullable(Id),
    duration_ms: Type.Integer(),
    body_bytes: Nullable(
      Type.Integer({ description: 'null where it was refused before its body was read.' }),
    ),
    replayed: Type.Boolean({
      description: 'Whether it was answered with the job of an earlier call.',
    }),
  },
  {
    title: 'AgentTriggerCall',
    examples: [
      {
        id: '019ab0c1-2d3e-7f42-8b1c-5d6e7f8a9b0c',
        received_at: '2026-01-01T00:00:00.000Z',
        status: 401,
        error: 'invalid_signature',
        message: 'The request is not signed',
        job_id: null,
        duration_ms: 2,
        body_bytes: 1_204,
        replayed: false,
      },
    ],
  },
);

export function triggerRoutes(
  server: Server,
  {
    triggers,
    calls,
    publicUrl,
  }: {
    triggers: Triggers;
    calls: Pick<TriggerCalls, 'list'>;
    /** Where clients reach the platform; null where that is unknown. */
    publicUrl: string | null;
  },
) {
  const triggerIdOf = (request: FastifyRequest) =>
    (request.params as { triggerId: string }).triggerId;
  /** Unknown triggers are 404 before their body is checked (docs/decisions/order-of-checks.md). */
  const lookUp = async (request: FastifyRequest) => {
    await triggers.find(callerOf(request).organizationId, triggerIdOf(request));
  };
  /** A skill that the key may not run is 403 before the body is checked. */
  const mayChange = (request: FastifyRequest) =>
    triggers.requireChangeable(callerOf(request), triggerIdOf(request));

  server.post(
    '/api/agent-triggers',
    {
      schema: {
        tags,
        security,
        operationId: 'createAgentTrigger',
        summary: 'Create a trigger',
        description:
          'Gives an address under which others start runs of a skill. Whoever knows its token may ' +
          'call it, so keep it as you keep a key. It works in the name of the key that made it. ' +
          'Without a skill, the agent handles what comes by its own instructions.',
        body: Type.Object(
          {
            agent_id: fields.agent_id,
            name: fields.name,
            skill_category: Type.Optional({ ...fields.skill_category, default: 'agent' }),
            skill_name: Type.Optional({ ...fields.skill_name, default: 'handle-event' }),
            ...optionalFields,
          },
          {
            title: 'NewAgentTrigger',
            additionalProperties: false,
            examples: [
              {
                agent_id: 'default',
                name: 'Pushes to the handbook',
                skill_category: 'text',
                skill_name: 'word-count',
                mapping: '{"text": body.head_commit.message}',
              },
            ],
          },
        ),
        response: {
          201: { ...CreatedTrigger, ...carries('Location') },
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
      const created = await triggers.create(callerOf(request), checked(request.body));
      return reply
        .status(201)
        .header('location', `/api/agent-triggers/${created.id}`)
        .send({ ...created, url: addressOf(request, created.token, publicUrl) });
    },
  );

  server.get(
    '/api/agent-triggers',
    {
      schema: {
        tags,
        security,
        operationId: 'listAgentTriggers',
        summary: 'List triggers, newest first',
        querystring: Type.Object({ include: IncludedRefusal, ...Page.properties }),
        response: {
          200: { ...Paged(Trigger, 'A page of triggers.'), ...carries('X-Next-Offset') },
          ...apiRefusals(),
        },
      },
    },
    async (request, reply) => {
      const { include, ...page } = request.query;
      const { organizationId } = callerOf(request);
      const list = include ? triggers.listWithRefusals : triggers.list;
      const { triggers: data, total, next } = await list(organizationId, page);
      tellNext(reply, next);
      return { data, total, ...page };
    },
  );

  server.get(
    '/api/agent-triggers/:triggerId',
    {
      schema: {
        tags,
        security,
        operationId: 'getAgentTrigger',
        summary: 'Get a trigger',
        params: Params,
        querystring: Type.Object({ include: IncludedRefusal }),
        response: { 200: Trigger, ...apiRefusals('not_found') },
      },
    },
    (request) => {
      const get = request.query.include ? triggers.getWithRefusal : triggers.get;
      return get(callerOf(request).organizationId, request.params.triggerId);
    },
  );

  server.put(
    '/api/agent-triggers/:triggerId',
    {
      onRequest: mayChange,
      schema: {
        tags,
        security,
        operationId: 'updateAgentTrigger',
        summary: 'Change a trigger, switch it off or on',
        description:
          'Only what the body names changes; input is replaced as a whole. The token stays. The ' +
          'key needs the scopes of the skill before and after the change.',
        params: Params,
        body: Type.Object(
          {
            agent_id: Type.Optional(fields.agent_id),
            name: Type.Optional(fields.name),
            skill_category: Type.Optional(fields.skill_category),
            skill_name: Type.Optional(fields.skill_name),
            skill_version: Type.Optional(fields.skill_version),
            input: Type.Optional(fields.input),
            mapping: Type.Optional(fields.mapping),
            rate_limit: Type.Optional(fields.rate_limit),
            signing_secret: Type.Optional(SigningSecret),
            active: Type.Optional(fields.active),
          },
          {
            title: 'AgentTriggerChanges',
            additionalProperties: false,
            examples: [{ active: false }],
          },
        ),
        response: {
          200: Trigger,
          ...apiRefusals('not_found', 'skill_not_found', 'insufficient_scope', ...bodyRefusals),
        },
      },
    },
    (request) =>
      triggers.update(callerOf(request), request.params.triggerId, checked(request.body)),
  );

  server.get(
    '/api/agent-triggers/:triggerId/calls',
    {
      onRequest: lookUp,
      schema: {
        tags,
        security,
        operationId: 'listAgentTriggerCalls',
        summary: 'List the last calls of a trigger, newest first',
        description:
          'Those that were accepted and those that were refused, at most 200 and none older than 7 ' +
          'days. A call is there about a second after it was answered.',
        params: Params,
        querystring: Page,
        response: { 200: Paged(TriggerCall, 'A page of calls.'), ...apiRefusals('not_found') },
      },
    },
    async (request) => {
      const { query: page } = request;
      const { calls: data, total } = await calls.list(request.params.triggerId, page);
      return { data, total, ...page };
    },
  );

  server.delete(
    '/api/agent-triggers/:triggerId',
    {
      onRequest: lookUp,
      schema: {
        tags,
        security,
        operationId: 'deleteAgentTrigger',
        summary: 'Delete a trigger',
        params: Params,
        response: { 204: Nothing, ...apiRefusals('not_found') },
      },
    },
    async (request, reply) => {
      await triggers.remove(callerOf(request).organizationId, request.params.triggerId);
      return reply.status(204).send(null);
    },
  );
}

/** Checks the rules that a JSON Schema cannot express. */
function checked<T extends TriggerFields>(body: T): T {
  refuseLong('mapping', body.mapping ?? '', mappingMax);
  refuseLong('input', JSON.stringify(body.input ?? {}));
  const fault = secretFault(body.signing_secret ?? '');
  if (fault !== null) throw invalid('signing_secret', fault);
  return body;
}

/**
 * The address of a trigger: below PUBLIC_URL, else at the host of the request. Only the path when the
 * request names no usable host.
 */
function addressOf(request: FastifyRequest, token: string, publicUrl: string | null): string {
  const path = `/api/webhooks/agent/${token}`;
  if (publicUrl !== null) return publicUrl + path;
  const host = request.headers.host?.toLowerCase();
  const url = URL.parse(`http://${host}${path}`);
  // A client may send any text as Host; some texts would change the path or the host of the url.
  return host !== undefined && url?.host === host && url.pathname === path ? url.href : path;
}
