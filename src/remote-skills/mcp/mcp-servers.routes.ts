/** `/admin/mcp-servers`: servers of the Model Context Protocol whose tools are skills (docs/mcp-servers.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { adminRefusals, bodyRefusals } from '../../http/refusals.ts';
import { Nothing, Nullable, Page, Paged, Timestamp, Words } from '../../http/schemas.ts';
import type { Server } from '../../http/server.ts';
import { RemoteVersion, VersionCounts } from '../versions.schemas.ts';
import type { McpServers } from './mcp-servers.ts';

const operation = { tags: ['MCP servers'], security: [{ adminBearer: [] }, { adminHeader: [] }] };

const namePattern = '^[a-z0-9]+(-[a-z0-9]+)*$';
const ServerName = Type.String({
  pattern: namePattern,
  maxLength: 50,
  description: 'In kebab case; its skills have the category mcp-<name>.',
});
const Text = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, description });
const Tools = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
  maxItems: 500,
  description: 'Tools, by their names at the server, that may be called again after a failure.',
});

const oauth = {
  client_id: Text(500, 'The id of the client.'),
  issuer: Text(2_048, 'The authorization server; the secret is sent to no other.'),
  scope: Type.Optional(Text(1_000, 'Scopes to ask for, separated by spaces.')),
};

const fields = {
  url: Type.Optional(Text(2_048, 'Its address, http or https.')),
  command: Type.Optional(
    Text(1_024, 'A program that speaks the protocol on its standard input and output.'),
  ),
  args: Type.Optional(
    Type.Array(Type.String({ maxLength: 4_096 }), {
      maxItems: 100,
      description: 'Arguments of the command.',
    }),
  ),
  env: Type.Optional(
    Type.Record(
      Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,99}$' }),
      Nullable(Type.String({ maxLength: 8_192 })),
      {
        maxProperties: 50,
        description:
          'Environment of the command, stored encrypted and never shown; null keeps the stored value.',
      },
    ),
  ),
  headers: Type.Optional(
    Type.Record(
      Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$" }),
      Nullable(Type.String({ pattern: '^[!-~]([ -~]*[!-~])?$', maxLength: 8_192 })),
      {
        maxProperties: 50,
        description:
          'Headers of each request, stored encrypted and never shown; null keeps the stored value.',
      },
    ),
  ),
  oauth: Type.Optional(
    Type.Object(
      {
        ...oauth,
        client_secret: Nullable(
          Type.String({
            ...{ minLength: 8, maxLength: 4_096 },
            description: 'Stored encrypted and never shown; null keeps the stored value.',
          }),
        ),
      },
      {
        title: 'McpServerOAuth',
        additionalProperties: false,
        description: 'For a server that takes tokens of the client credentials grant.',
      },
    ),
  ),
  timeout_ms: Type.Optional(
    Type.Integer({
      ...{ minimum: 1_000, maximum: 3_600_000, default: 60_000 },
      description: 'Time limit of one call.',
    }),
  ),
  idempotent_tools: Type.Optional(Tools),
  trust_annotations: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Whether a tool that calls itself idempotent or read-only may be called again after a failure.',
    }),
  ),
};

const NewMcpServer = Type.Object(
  { name: ServerName, ...fields },
  {
    title: 'NewMcpServer',
    additionalProperties: false,
    examples: [
      {
        name: 'tickets',
        url: 'https://tickets.example.com/mcp',
        headers: { authorization: 'Bearer token-from-the-provider' },
      },
    ],
  },
);
const McpServerChange = Type.Object(fields, {
  title: 'McpServerChange',
  additionalProperties: false,
  examples: [
    {
      url: 'https://tickets.example.com/mcp',
      headers: { authorization: null },
      timeout_ms: 30_000,
    },
  ],
});

const summary = {
  name: ServerName,
  category: Type.String({ description: 'The category of its skills, which is also their scope.' }),
  url: Nullable(Type.String()),
  command: Nullable(Type.String()),
  args: Type.Array(Type.String()),
  headers: Type.Array(Type.String(), { description: 'The names of the stored headers.' }),
  env: Type.Array(Type.String(), { description: 'The names of the stored variables.' }),
  oauth: Nullable(Type.Object(oauth, { description: 'Without the secret.' })),
  timeout_ms: Type.Integer(),
  idempotent_tools: Tools,
  trust_annotations: Type.Boolean(),
  status: {
    ...Words(['new', 'available', 'failing'] as const),
    description: 'How the last refresh went; new before the first.',
  },
  fault: Nullable(Type.String({ description: 'Why the last refresh failed.' })),
  fault_at: Nullable(Timestamp),
  refreshed_at: Nullable(Timestamp),
  server: Type.Object(
    {
      name: Nullable(Type.String()),
      version: Nullable(Type.String()),
      protocol: Nullable(Type.String()),
      instructions: Nullable(Type.String()),
    },
    { description: 'What the server says of itself; nothing of it is used.' },
  ),
  left_out: Type.Array(Type.Object({ tool: Type.String(), reason: Type.String() }), {
    description: 'Tools that could not become skills: the first 100.',
  }),
  left_out_total: Type.Integer(),
  created_at: Timestamp,
  updated_at: Timestamp,
};

const exampleSummary = {
  ...{ name: 'tickets', category: 'mcp-tickets', url: 'https://tickets.example.com/mcp' },
  ...{ command: null, args: [], headers: ['authorization'], env: [], oauth: null },
  timeout_ms: 60_000,
  ...{ idempotent_tools: [], trust_annotations: false, status: 'available', fault: null },
  ...{ fault_at: null, refreshed_at: '2026-01-01T00:00:00.000Z' },
  server: { name: 'tickets', version: '1.0.0', protocol: '2026-07-28', instructions: null },
  ...{ left_out: [], left_out_total: 0 },
  ...{ created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' },
};

const McpServerSummary = Type.Object(
  {
    ...summary,
    skills: VersionCounts,
  },
  {
    title: 'McpServerSummary',
    examples: [{ ...exampleSummary, skills: { active: 12, quarantined: 1, withdrawn: 0 } }],
  },
);

const McpServer = Type.Object(
  { ...summary, skills: Type.Array(RemoteVersion, { description: 'All versions of its skills.' }) },
  {
    title: 'McpServer',
    description: 'The server with the versions of its skills.',
    examples: [{ ...exampleSummary, skills: [] }],
  },
);

const nameParam = Type.String({ description: 'The name of the server.', examples: ['tickets'] });
const Params = Type.Object({ name: nameParam });
const VersionParams = Type.Object({
  name: nameParam,
  version: Type.String({ description: 'The version to activate.', examples: ['v1.1'] }),
  skillName: Type.String({ description: 'The name of the skill.', examples: ['create-ticket'] }),
});

export function mcpServerRoutes(server: Server, { mcpServers }: { mcpServers: McpServers }): void {
  listRoutes(server, mcpServers);
  changeRoutes(server, mcpServers);
  versionRoutes(server, mcpServers);
}

function listRoutes(server: Server, mcpServers: McpServers): void {
  const listSchema = {
    ...operation,
    operationId: 'listMcpServers',
    summary: 'List the MCP servers whose tools are skills, by name',
    querystring: Page,
    response: { 200: Paged(McpServerSummary, 'A page of servers.'), ...adminRefusals() },
  };
  server.get('/admin/mcp-servers', { schema: listSchema }, async ({ query: page }) => ({
    ...(await mcpServers.list(page)),
    ...page,
  }));
  const getSchema = {
    ...operation,
    operationId: 'getMcpServer',
    summary: 'Get an MCP server with its skills and what has changed of them',
    params: Params,
    response: { 200: McpServer, ...adminRefusals('not_found') },
  };
  server.get(
    '/admin/mcp-servers/:name',
    { onRequest: requireServer(mcpServers), schema: getSchema },
    ({ params }) => mcpServers.find(params.name),
  );
}

function changeRoutes(server: Server, mcpServers: McpServers): void {
  const addSchema = {
    ...operation,
    operationId: 'addMcpServer',
    summary: 'Add an MCP server, whose tools become skills',
    description:
      'Its tools are imported and active at once. A server that cannot be reached is added too, ' +
      'with its fault.',
    body: NewMcpServer,
    response: { 201: McpServer, ...adminRefusals('conflict', ...bodyRefusals) },
  };
  server.post('/admin/mcp-servers', { schema: addSchema }, async ({ body }, reply) => {
    const { name, ...given } = body;
    return reply.status(201).send(await mcpServers.add(name, given));
  });
  const replaceSchema = {
    ...operation,
    operationId: 'replaceMcpServer',
    summary: 'Change an MCP server, and refresh it',
    description: 'Replaces all that was set: omitted fields have their defaults again.',
    params: Params,
    body: McpServerChange,
    response: { 200: McpServer, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
  };
  server.put(
    '/admin/mcp-servers/:name',
    { onRequest: requireServer(mcpServers), schema: replaceSchema },
    ({ params, body }) => mcpServers.replace(params.name, body),
  );
  const deleteSchema = {
    ...operation,
    operationId: 'deleteMcpServer',
    summary: 'Remove an MCP server; its skills become inactive',
    params: Params,
    response: { 204: Nothing, ...adminRefusals('not_found') },
  };
  server.delete(
    '/admin/mcp-servers/:name',
    { onRequest: requireServer(mcpServers), schema: deleteSchema },
    async ({ params }, reply) => {
      await mcpServers.remove(params.name);
      return reply.status(204).send(null);
    },
  );
}

function versionRoutes(server: Server, mcpServers: McpServers): void {
  const refreshSchema = {
    ...operation,
    operationId: 'refreshMcpServer',
    summary: 'Compare the skills of an MCP server with its tools of now',
    description:
      'A tool that differs, or is new, makes a version in quarantine. A server that cannot be ' +
      'reached is answered with its fault; its skills stay as they are.',
    params: Params,
    response: { 200: McpServer, ...adminRefusals('not_found') },
  };
  server.post(
    '/admin/mcp-servers/:name/refresh',
    { onRequest: requireServer(mcpServers), schema: refreshSchema },
    ({ params }) => mcpServers.refresh(params.name),
  );
  const activateSchema = {
    ...operation,
    operationId: 'activateMcpSkill',
    summary: 'Activate a version in quarantine',
    params: VersionParams,
    body: Type.Object(
      {
        digest: Type.String({
          pattern: '^[0-9a-f]{64}$',
          description: 'The digest of the version as it was read; another one is refused.',
        }),
      },
      {
        title: 'McpSkillActivation',
        additionalProperties: false,
        examples: [{ digest: '0'.repeat(64) }],
      },
    ),
    response: { 200: McpServer, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
  };
  server.post(
    '/admin/mcp-servers/:name/skills/:version/:skillName/activate',
    { onRequest: requireServer(mcpServers), schema: activateSchema },
    ({ params: { name, ...version }, body }) => mcpServers.activate(name, { ...version, ...body }),
  );
}

/** A hook: an unknown server is 404 before any other check (docs/decisions/order-of-checks.md). */
function requireServer(mcpServers: McpServers) {
  return async ({ params }: FastifyRequest) => {
    await mcpServers.find((params as { name: string }).name);
  };
}
