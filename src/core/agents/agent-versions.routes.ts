/** `/api/agents/{agentId}/versions`. */
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { lookUp } from '../../adapters/http/look-up.ts';
import { apiRefusals } from '../../adapters/http/refusals.ts';
import { Nullable, Page, Paged, Timestamp, Words } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { unknownFirst } from '../../adapters/http/unknown-first.ts';
import { notFound } from '../../kernel/errors.ts';
import type { AgentVersions } from './agent-versions.ts';
import { SavedAgent, VersionedFields, versionedFields } from './agents.schemas.ts';
import type { Agents } from './agents.ts';

const operation = { tags: ['Agents'], security: [{ apiKey: [] }] };

/** The largest version number that the databases can hold; larger ones are unknown versions. */
const numberMax = 2_147_483_647;

const summary = {
  version: Type.Integer({ description: 'Counts from 1 inside the agent.' }),
  changed: Type.Array(Words(versionedFields), {
    description: 'The fields that differ from the version before it.',
  }),
  restored_from: {
    ...Nullable(Type.Integer()),
    description: 'The version that it restored; null where it restored none.',
  },
  is_current: Type.Boolean(),
  created_at: Timestamp,
};
const summaryExample = {
  version: 3,
  changed: ['instructions'],
  restored_from: null,
  is_current: true,
  created_at: '2026-01-01T00:00:00.000Z',
};
const VersionSummary = Type.Object(summary, {
  title: 'AgentVersionSummary',
  examples: [summaryExample],
});
const Version = Type.Object(
  {
    ...summary,
    fields: VersionedFields,
    compared_to: {
      ...Nullable(Type.Integer()),
      description: 'The version that differences are told from; null for the first one.',
    },
    differences: Type.Array(
      Type.Object({
        field: Words(versionedFields),
        before: Type.Unknown({ description: 'In the version of compared_to.' }),
        after: Type.Unknown(),
      }),
    ),
  },
  {
    title: 'AgentVersion',
    description: 'The version.',
    examples: [
      {
        ...summaryExample,
        fields: {
          instructions: 'Be brief.',
          variables: {},
          model: null,
          model_settings: null,
          fallback_models: [],
          skills: [],
          approvals: [],
          tool_rules: [],
          guards: [],
          agents: [],
          memory: 'user',
          recall: null,
          profile: null,
          memory_formation: null,
        },
        compared_to: 2,
        differences: [{ field: 'instructions', before: '', after: 'Be brief.' }],
      },
    ],
  },
);

const agentParam = { agentId: Type.String({ description: 'The id of the agent.' }) };
const params = Type.Object({
  ...agentParam,
  version: Type.String({ description: 'The number of the version.' }),
});

const listSchema = {
  ...operation,
  operationId: 'listAgentVersions',
  summary: 'List the versions of an agent, newest first',
  params: Type.Object(agentParam),
  querystring: Page,
  response: { 200: Paged(VersionSummary, 'A page of versions.'), ...apiRefusals('not_found') },
};
const getSchema = {
  ...operation,
  operationId: 'getAgentVersion',
  summary: 'Get a version of an agent, and how it differs from another one',
  params,
  querystring: Type.Object({
    compare: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: numberMax,
        description: 'The version to compare with; the one before it by default.',
      }),
    ),
  }),
  response: { 200: Version, ...apiRefusals('not_found') },
};
const restoreSchema = {
  ...operation,
  operationId: 'restoreAgentVersion',
  summary: 'Go back to a version of an agent',
  description:
    'Gives the agent the fields of the version again, as a new version. Nothing changes where it has them. Needs the ' +
    'scopes of a change of the agent.',
  params,
  response: {
    200: SavedAgent,
    ...apiRefusals('not_found', 'insufficient_scope', 'validation_error'),
  },
};

interface VersionRoutes {
  readonly agents: Agents;
  readonly agentVersions: AgentVersions;
}

export function agentVersionRoutes(server: Server, { agents, agentVersions }: VersionRoutes): void {
  const findAgent = lookUp('agentId', (id, { organizationId }) => agents.find(organizationId, id));
  /** An unknown agent or version is 404 before the query is validated. */
  const lookUpVersion = async (request: FastifyRequest) => {
    await findAgent(request);
    const { agentId, version } = request.params as Static<typeof params>;
    const { organizationId } = callerOf(request);
    await agentVersions.get(organizationId, agentId, { n: numberOf(version) });
  };
  const listOptions = { errorHandler: unknownFirst(findAgent), schema: listSchema };
  server.get('/api/agents/:agentId/versions', listOptions, async (request) => {
    const { params, query: page } = request;
    const { organizationId } = callerOf(request);
    const { versions, total } = await agentVersions.list(organizationId, params.agentId, page);
    return { data: versions, total, ...page };
  });
  const getOptions = { errorHandler: unknownFirst(lookUpVersion), schema: getSchema };
  server.get('/api/agents/:agentId/versions/:version', getOptions, (request) => {
    const { agentId, version } = request.params;
    const asked = { n: numberOf(version), compare: request.query.compare };
    return agentVersions.get(callerOf(request).organizationId, agentId, asked);
  });
  const restoreOptions = { errorHandler: unknownFirst(lookUpVersion), schema: restoreSchema };
  server.post('/api/agents/:agentId/versions/:version/restore', restoreOptions, (request) => {
    const { agentId, version } = request.params;
    return agentVersions.restore(callerOf(request), agentId, numberOf(version));
  });
}

function numberOf(text: string): number {
  const n = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0;
  if (n < 1 || n > numberMax) throw notFound('Version');
  return n;
}
