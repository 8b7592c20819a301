/**
 * `/openapi.json`: the API as OpenAPI 3.1, from the schemas of the routes. The document is generated at
 * its first request, on a second server that never listens, so that only a process that serves the
 * document loads the generator.
 */
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Caller } from '../../kernel/caller.ts';
import { digestOf } from '../../kernel/digest.ts';
import { lazily } from '../../kernel/lazy.ts';
import { callerOf } from './authenticate.ts';
import { namesTag } from './conditional-reads.ts';
import { type OpenApiDocument, shareComponents } from './openapi-components.ts';
import { ownCompilers } from './own-compilers.ts';
import { apiRefusals } from './refusals.ts';
import { carries } from './response-headers.ts';
import { FreeObject, Words } from './schemas.ts';
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
  { name: 'Batches', description: 'Many runs, accepted with one request.' },
  { name: 'Queue', description: 'What waits, and why.' },
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
  { name: 'Files', description: 'Pictures, documents and other files, for tasks and from runs.' },
  { name: 'User data', description: 'What is kept of a user, to be taken out and erased.' },
  { name: 'Triggers', description: 'Addresses that external systems call to start runs.' },
  { name: 'Webhooks', description: 'Endpoints that get events, and the deliveries to them.' },
  {
    name: 'Accounts',
    description: "An organization's accounts at servers outside that ask for authorization.",
  },
  {
    name: 'MCP servers',
    description: 'Servers of the Model Context Protocol whose tools are skills.',
  },
  {
    name: 'OpenAPI imports',
    description: 'OpenAPI documents whose operations are skills.',
  },
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

/** A description of the API as it is sent. */
export interface ApiDocument {
  readonly bytes: Buffer;
  readonly etag: string;
}

export function documentOf(described: object): ApiDocument {
  const text = JSON.stringify(described);
  // Weak: compressed, it is other bytes.
  return { bytes: Buffer.from(text), etag: `W/"${digestOf(text)}"` };
}

/**
 * Returns a function that generates the document, as JSON, at its first call. `routes` is called on
 * another server, so it may only register routes and their hooks. `requests` describes those that the
 * platform sends, and their headers.
 */
export function createOpenApi(
  version: string,
  routes: (server: Server) => void,
  requests: () => { webhooks: Record<string, object>; parameters: Record<string, object> },
): () => Promise<ApiDocument> {
  return lazily(async () => {
    const { components, ...described } = await generate(version, routes);
    const { webhooks, parameters } = requests();
    return documentOf({ ...described, components: { ...components, parameters }, webhooks });
  });
}

async function generate(version: string, routes: (server: Server) => void) {
  const { default: swagger } = await import('@fastify/swagger');
  const server = Fastify({ exposeHeadRoutes: false, schemaController: ownCompilers });
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

/**
 * `GET /openapi.json`. `documentWithSkills` adds an operation for each skill that the caller may run; `admit` is the
 * hook of requests for it.
 */
export function openApiRoutes(
  server: Server,
  document: () => Promise<ApiDocument>,
  documentWithSkills: (document: ApiDocument, caller: Caller) => Promise<ApiDocument>,
  admit: (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void,
): void {
  const onRequest = (
    request: FastifyRequest,
    reply: FastifyReply,
    done: (error?: Error) => void,
  ) => {
    if (hasSkills(request.query)) admit(request, reply, done);
    else done();
  };
  server.get(
    '/openapi.json',
    {
      onRequest,
      schema: {
        tags: ['Operations'],
        // Without a key, unless the request names skills.
        security: [{}, { apiKey: [] }],
        operationId: 'getOpenApi',
        summary: 'This description of the API',
        description:
          'With skills=1 and an API key it has an operation for each active skill that the key may run, with ' +
          'its own input and output. An answer with the ETag of If-None-Match is 304.',
        querystring: Type.Object({
          skills: Type.Optional({
            ...Words(['1']),
            description: '1: adds the skills that the key may run.',
          }),
        }),
        headers: Type.Object({
          'if-none-match': Type.Optional(
            Type.String({
              description: 'ETags of documents that the client has. A list, which may be repeated.',
            }),
          ),
        }),
        response: {
          ...apiRefusals(),
          200: Type.Object(
            { openapi: Type.String(), info: FreeObject, paths: FreeObject },
            {
              ...carries('ETag'),
              description: 'An OpenAPI document.',
              examples: [{ openapi, info: { title: info.title }, paths: {} }],
            },
          ),
          304: Type.Null({
            ...carries('ETag'),
            description: 'The client has this document already.',
          }),
        },
      },
    },
    async (request, reply) => {
      const isOwn = hasSkills(request.query);
      const plain = await document();
      const { bytes, etag } = isOwn ? await documentWithSkills(plain, callerOf(request)) : plain;
      reply.headers({ etag, 'cache-control': isOwn ? 'private, no-cache' : 'no-cache' });
      if (isOwn) addVary(reply, 'x-api-key');
      if (namesTag(request.headers['if-none-match'], etag)) return reply.status(304).send(null);
      // Sent as bytes, without the serializer.
      return reply.header('content-type', 'application/json; charset=utf-8').send(bytes as never);
    },
  );
}

/** Any value of the parameter, so that a wrong one is refused to callers with a key only. */
function hasSkills(query: unknown): boolean {
  return (query as { skills?: unknown }).skills !== undefined;
}

function addVary(reply: FastifyReply, header: string): void {
  const vary = reply.getHeader('vary');
  reply.header('vary', vary === undefined ? header : `${vary}, ${header}`);
}
