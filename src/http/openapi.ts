/**
 * `/openapi.json`: the API as OpenAPI 3.1, from the schemas of the routes. The document is generated at
 * its first request, on a second server that never listens, so that only a process that serves the
 * document loads the generator.
 */
import Fastify from 'fastify';
import { Type } from 'typebox';
import { lazily } from '../kernel/lazy.ts';
import { type OpenApiDocument, shareComponents } from './openapi-components.ts';
import { refusals } from './refusals.ts';
import { FreeObject } from './schemas.ts';
import type { Server } from './server.ts';

const openapi = '3.1.0';

const info = {
  title: 'Skillwright',
  summary: 'A platform on which agents execute skills.',
  description: [
    'Agents execute skills: versioned units of work with an input and an output schema. A run is',
    'accepted at once, recorded before it is answered, and carried out in the background; its job',
    'tells how it goes, its conversation what was said.',
    '',
    '**Credentials.** Everything under `/api` takes an API key in `x-api-key`; everything under',
    '`/admin` takes the admin secret, which makes the keys.',
    '',
    '**Limits.** A key may make so many requests within any minute; each answer says how many are',
    'left, and a `429` when to try again.',
    '',
    '**Errors.** Every refusal has the shape of the schema Error; branch on its `error`, never on',
    'its `message`. Besides what an operation names, an unknown path is `404 not_found`, and a known',
    'one with another method `405 method_not_allowed` with `Allow`. Every answer carries',
    '`X-Request-Id`: send your own to find a request again in the log.',
    '',
    '**Versions.** Skills have versions, in their path; old ones stay until they are deprecated.',
  ].join('\n'),
  license: { name: 'MIT', identifier: 'MIT' },
};

/** In the order in which a new user needs them. */
const tags = [
  { name: 'API keys', description: 'Credentials of clients: rate limits and scopes.' },
  { name: 'Skills', description: 'The registry of skills, by version.' },
  { name: 'Execution', description: 'Running a skill.' },
  { name: 'Jobs', description: 'The state and result of each accepted run.' },
  {
    name: 'Approvals',
    description: 'Questions of runs to a person, and the decisions.',
  },
  { name: 'Run events', description: 'Events from outside, for which runs wait.' },
  { name: 'Conversations', description: 'The messages of jobs and their tokens.' },
  {
    name: 'Agents',
    description: 'Jobs run as an agent, which has instructions, a model and skills.',
  },
  { name: 'Scheduled jobs', description: 'Runs by a cron expression.' },
  { name: 'Memories', description: 'Texts that an agent keeps for later runs.' },
  { name: 'Triggers', description: 'Addresses that external systems call to start runs.' },
  { name: 'Webhooks', description: 'Endpoints that get events, and the deliveries to them.' },
  { name: 'Credentials', description: 'Accounts of organizations with model providers.' },
  { name: 'Usage', description: 'Tokens by day, and budgets that limit them.' },
  {
    name: 'Statistics',
    description: 'Counts, durations and tokens of runs in the last hour and the last day.',
  },
  { name: 'Operations', description: 'Health, metrics and this documentation.' },
];

const securitySchemes = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'A key from POST /admin/api-keys.',
  },
  adminBearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'The admin secret.',
  },
  adminHeader: {
    type: 'apiKey',
    in: 'header',
    name: 'x-admin-secret',
    description: 'The admin secret, in a header of its own.',
  },
} as const;

/**
 * Returns a function that generates the document, as JSON, at its first call. `routes` is called on
 * another server, so it may only register routes and their hooks. `webhooks` describes the requests that
 * the platform sends.
 */
export function createOpenApi(
  version: string,
  routes: (server: Server) => void,
  webhooks: () => Record<string, object>,
): () => Promise<Buffer> {
  return lazily(async () => {
    const document = await generate(version, routes);
    return Buffer.from(JSON.stringify({ ...document, webhooks: webhooks() }));
  });
}

async function generate(version: string, routes: (server: Server) => void) {
  const { default: swagger } = await import('@fastify/swagger');
  const server = Fastify({ exposeHeadRoutes: false });
  // This server handles no requests, so it needs no validators or serializers.
  server.setValidatorCompiler(() => () => true);
  server.setSerializerCompiler(() => () => '');
  await server.register(swagger, {
    convertConstToEnum: false,
    openapi: {
      openapi,
      info: { ...info, version },
      servers: [{ url: '/' }],
      tags,
      components: { securitySchemes },
    },
  });
  routes(server as unknown as Server);
  await server.ready();
  const document = server.swagger() as unknown as OpenApiDocument;
  await server.close();
  return shareComponents(document);
}

/** `GET /openapi.json`. */
export function openApiRoutes(server: Server, { document }: { document: () => Promise<Buffer> }) {
  server.get(
    '/openapi.json',
    {
      schema: {
        tags: ['Operations'],
        security: [],
        operationId: 'getOpenApi',
        summary: 'This description of the API',
        response: {
          ...refusals(),
          200: Type.Object(
            { openapi: Type.String(), info: FreeObject, paths: FreeObject },
            {
              description: 'An OpenAPI document.',
              examples: [{ openapi, info: { title: info.title }, paths: {} }],
            },
          ),
        },
      },
    },
    async (_request, reply) => {
      // Sent as bytes, without the serializer.
      const bytes = await document();
      return reply
        .header('content-type', 'application/json; charset=utf-8')
        .header('cache-control', 'no-cache')
        .send(bytes as never);
    },
  );
}
