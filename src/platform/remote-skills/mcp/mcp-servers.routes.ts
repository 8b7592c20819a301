/** `/admin/mcp-servers`: servers of the Model Context Protocol whose tools are skills (docs/mcp-servers.md). */
import { adminRefusals, bodyRefusals } from '../../../adapters/http/refusals.ts';
import { Nothing, Page, Paged } from '../../../adapters/http/schemas.ts';
import type { Server } from '../../../adapters/http/server.ts';
import { requireSource } from '../require-source.ts';
import { PinnedVersion } from '../versions.schemas.ts';
import {
  McpServer,
  McpServerChange,
  McpServerParams,
  McpServerSummary,
  McpSkillDecision,
  McpSkillParams,
  NewMcpServer,
} from './mcp-servers.schemas.ts';
import type { McpServers } from './mcp-servers.ts';

const operation = { tags: ['MCP servers'], security: [{ adminBearer: [] }, { adminHeader: [] }] };

export function mcpServerRoutes(server: Server, mcpServers: McpServers): void {
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
    params: McpServerParams,
    response: { 200: McpServer, ...adminRefusals('not_found') },
  };
  server.get(
    '/admin/mcp-servers/:name',
    { onRequest: requireSource(mcpServers), schema: getSchema },
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
    params: McpServerParams,
    body: McpServerChange,
    response: { 200: McpServer, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
  };
  server.put(
    '/admin/mcp-servers/:name',
    { onRequest: requireSource(mcpServers), schema: replaceSchema },
    ({ params, body }) => mcpServers.replace(params.name, body),
  );
  const deleteSchema = {
    ...operation,
    operationId: 'deleteMcpServer',
    summary: 'Remove an MCP server; its skills become inactive',
    params: McpServerParams,
    response: { 204: Nothing, ...adminRefusals('not_found') },
  };
  server.delete(
    '/admin/mcp-servers/:name',
    { onRequest: requireSource(mcpServers), schema: deleteSchema },
    async ({ params }, reply) => {
      await mcpServers.remove(params.name);
      return reply.status(204).send(null);
    },
  );
}

function versionRoutes(server: Server, mcpServers: McpServers): void {
  const getSchema = {
    ...operation,
    operationId: 'getMcpSkillVersion',
    summary:
      'Get a version of a skill with all that is pinned of it, to be read before it is activated',
    params: McpSkillParams,
    response: { 200: PinnedVersion, ...adminRefusals('not_found') },
  };
  server.get(
    '/admin/mcp-servers/:name/skills/:version/:skillName',
    { onRequest: requireSource(mcpServers), schema: getSchema },
    ({ params: { name, ...version } }) => mcpServers.findVersion(name, version),
  );
  const refreshSchema = {
    ...operation,
    operationId: 'refreshMcpServer',
    summary: 'Compare the skills of an MCP server with its tools of now',
    description:
      'A tool that differs, or is new, makes a version in quarantine. A server that cannot be ' +
      'reached is answered with its fault; its skills stay as they are.',
    params: McpServerParams,
    response: { 200: McpServer, ...adminRefusals('not_found') },
  };
  server.post(
    '/admin/mcp-servers/:name/refresh',
    { onRequest: requireSource(mcpServers), schema: refreshSchema },
    ({ params }) => mcpServers.refresh(params.name),
  );
  const activateSchema = {
    ...operation,
    operationId: 'activateMcpSkill',
    summary: 'Activate a version in quarantine',
    params: McpSkillParams,
    body: McpSkillDecision,
    response: { 200: McpServer, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
  };
  server.post(
    '/admin/mcp-servers/:name/skills/:version/:skillName/activate',
    { onRequest: requireSource(mcpServers), schema: activateSchema },
    ({ params: { name, ...version }, body }) => mcpServers.activate(name, { ...version, ...body }),
  );
  const rejectSchema = {
    ...operation,
    operationId: 'rejectMcpSkill',
    summary: 'Reject a version in quarantine',
    description: 'It stays inactive until the tool changes again, or it is activated after all.',
    params: McpSkillParams,
    body: McpSkillDecision,
    response: { 200: McpServer, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
  };
  server.post(
    '/admin/mcp-servers/:name/skills/:version/:skillName/reject',
    { onRequest: requireSource(mcpServers), schema: rejectSchema },
    ({ params: { name, ...version }, body }) => mcpServers.reject(name, { ...version, ...body }),
  );
}
