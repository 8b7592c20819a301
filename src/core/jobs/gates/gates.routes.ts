/** Limits and pauses that operators set: of organizations, API keys and skills by the administrator, of agents by keys. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../../../adapters/http/authenticate.ts';
import { lookUp } from '../../../adapters/http/look-up.ts';
import { adminRefusals, apiRefusals, bodyRefusals } from '../../../adapters/http/refusals.ts';
import { Id, MaxConcurrency, Slug } from '../../../adapters/http/schemas.ts';
import type { Server } from '../../../adapters/http/server.ts';
import type { QueueLimits } from '../queued-jobs/queue-limits.ts';

const adminSecurity = [{ adminBearer: [] }, { adminHeader: [] }];
const tags = ['Queue'];
const held =
  'Work beyond it is accepted and waits; waiting_for of a job says for what. Runs that go on are not stopped.';

const Limit = Type.Object(
  { max_concurrency: MaxConcurrency },
  { title: 'QueueLimit', additionalProperties: false, examples: [{ max_concurrency: 5 }] },
);
const State = Type.Object(
  { paused: Type.Boolean(), max_concurrency: MaxConcurrency },
  { title: 'QueueLimits', examples: [{ paused: false, max_concurrency: 5 }] },
);
const Pause = Type.Object(
  { paused: Type.Boolean() },
  { title: 'QueuePause', examples: [{ paused: true }] },
);
const ofKey = Type.Object(
  { max_concurrency: MaxConcurrency },
  { title: 'KeyLimit', examples: [{ max_concurrency: 5 }] },
);
const verbs = ['pause', 'resume'] as const;
const titled = (verb: string) => `${verb[0]?.toUpperCase()}${verb.slice(1)}`;

const OrganizationPath = Type.Object({
  organizationId: { ...Slug, description: 'The id of the organization.' },
});
const SkillPath = Type.Object({
  category: Type.String({ description: 'The category of the skill.' }),
  version: Type.String({ description: 'Its version, such as v1.0.' }),
  skillName: Type.String({ description: 'Its name.' }),
});
const AgentPath = Type.Object({ agentId: Type.String({ description: 'The id of the agent.' }) });

function lookUpSkill(limits: QueueLimits) {
  return async (request: FastifyRequest) => {
    const { category, version, skillName } = request.params as Record<string, string>;
    limits.requireSkill([category ?? '', version ?? '', skillName ?? '']);
  };
}

/** Below `/admin`. */
export function gateAdminRoutes(server: Server, limits: QueueLimits) {
  const admin = { tags, security: adminSecurity };
  // What a path names is looked up before the rest of a request is judged.
  const ofOrganization = lookUp('organizationId', (id) => limits.ofOrganization(id));
  const ofApiKey = lookUp('id', (id) => limits.requireKey(id));
  server.get(
    '/admin/organizations/:organizationId/queue',
    {
      onRequest: ofOrganization,
      schema: {
        ...admin,
        operationId: 'getQueueOfOrganization',
        summary: 'Get the limit and the pause of an organization',
        params: OrganizationPath,
        response: { 200: State, ...adminRefusals('not_found') },
      },
    },
    ({ params }) => limits.ofOrganization(params.organizationId),
  );
  server.put(
    '/admin/organizations/:organizationId/queue',
    {
      onRequest: ofOrganization,
      schema: {
        ...admin,
        operationId: 'limitOrganization',
        summary: 'Limit how many runs of an organization go on at a time',
        description: held,
        params: OrganizationPath,
        body: Limit,
        response: { 200: State, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
      },
    },
    ({ params, body }) => limits.limitOrganization(params.organizationId, body.max_concurrency),
  );
  server.put(
    '/admin/api-keys/:id/queue',
    {
      onRequest: ofApiKey,
      schema: {
        ...admin,
        operationId: 'limitApiKey',
        summary: 'Limit how many runs of an API key go on at a time',
        description: held,
        params: Type.Object({ id: { ...Id, description: 'The id of the key.' } }),
        body: Limit,
        response: { 200: ofKey, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
      },
    },
    ({ params, body }) => limits.limitKey(params.id, body.max_concurrency),
  );
  for (const verb of verbs) {
    const isPaused = verb === 'pause';
    server.post(
      `/admin/organizations/:organizationId/${verb}`,
      {
        onRequest: ofOrganization,
        schema: {
          ...admin,
          operationId: `${verb}Organization`,
          summary: `${titled(verb)} the work of an organization`,
          description: held,
          params: OrganizationPath,
          response: { 200: State, ...adminRefusals('not_found', 'conflict') },
        },
      },
      ({ params }) => limits.pauseOrganization(params.organizationId, isPaused),
    );
    server.post(
      `/admin/skills/:category/:version/:skillName/${verb}`,
      {
        onRequest: lookUpSkill(limits),
        schema: {
          ...admin,
          operationId: `${verb}Skill`,
          summary: `${titled(verb)} a version of a skill`,
          description: held,
          params: SkillPath,
          response: { 200: Pause, ...adminRefusals('skill_not_found', 'conflict') },
        },
      },
      ({ params: { category, version, skillName } }) =>
        limits.pauseSkill([category, version, skillName], isPaused),
    );
  }
}

/** Below `/api`. */
export function agentQueueRoutes(server: Server, limits: QueueLimits) {
  const api = { tags: ['Agents'], security: [{ apiKey: [] }], params: AgentPath };
  const onRequest = lookUp('agentId', (id, caller) => limits.ofAgent(caller, id));
  server.get(
    '/api/agents/:agentId/queue',
    {
      onRequest,
      schema: {
        ...api,
        operationId: 'getAgentQueue',
        summary: 'Get the limit and the pause of the queue of an agent',
        response: { 200: State, ...apiRefusals('not_found') },
      },
    },
    (request) => limits.ofAgent(callerOf(request), request.params.agentId),
  );
  server.put(
    '/api/agents/:agentId/queue',
    {
      onRequest,
      schema: {
        ...api,
        operationId: 'limitAgent',
        summary: 'Limit how many runs of an agent go on at a time',
        description: `${held} Needs the scopes of a change of the agent.`,
        body: Limit,
        response: {
          200: State,
          ...apiRefusals('not_found', 'insufficient_scope', 'conflict', ...bodyRefusals),
        },
      },
    },
    (request) =>
      limits.limitAgent(callerOf(request), request.params.agentId, request.body.max_concurrency),
  );
  for (const verb of verbs) {
    server.post(
      `/api/agents/:agentId/queue/${verb}`,
      {
        onRequest,
        schema: {
          ...api,
          operationId: `${verb}AgentQueue`,
          summary: `${titled(verb)} the queue of an agent`,
          description: `${held} Unlike the status paused of an agent, which refuses new work.`,
          response: { 200: State, ...apiRefusals('not_found', 'conflict') },
        },
      },
      (request) => limits.pauseAgent(callerOf(request), request.params.agentId, verb === 'pause'),
    );
  }
}
