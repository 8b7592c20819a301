/** `/admin/mcp-servers`: servers of the Model Context Protocol whose tools are skills (docs/mcp-servers.md). */
import { adminRefusals, bodyRefusals } from '../../../adapters/http/refusals.ts';
import type { Server } from '../../../adapters/http/server.ts';
import { requireSource } from '../require-source.ts';
import { type SourceApi, sourceOperation, sourceRoutes } from '../source-routes.ts';
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

const operation = sourceOperation('MCP servers');

const api: SourceApi = {
  path: '/admin/mcp-servers',
  tag: 'MCP servers',
  page: 'A page of servers.',
  words: {
    list: {
      operationId: 'listMcpServers',
      summary: 'List the MCP servers whose tools are skills, by name',
    },
    find: {
      operationId: 'getMcpServer',
      summary: 'Get an MCP server with its skills and what has changed of them',
    },
    add: {
      operationId: 'addMcpServer',
      summary: 'Add an MCP server, whose tools become skills',
      description:
        'Its tools are imported and active at once. A server that cannot be reached is added too, ' +
        'with its fault.',
    },
    replace: {
      operationId: 'replaceMcpServer',
      summary: 'Change an MCP server, and refresh it',
    },
    remove: {
      operationId: 'deleteMcpServer',
      summary: 'Remove an MCP server; its skills become inactive',
    },
    findVersion: {
      operationId: 'getMcpSkillVersion',
      summary:
        'Get a version of a skill with all that is pinned of it, to be read before it is activated',
    },
    refresh: {
      operationId: 'refreshMcpServer',
      summary: 'Compare the skills of an MCP server with its tools of now',
      description:
        'A tool that differs, or is new, makes a version in quarantine. A server that cannot be ' +
        'reached is answered with its fault; its skills stay as they are.',
    },
  },
  schemas: {
    params: McpServerParams,
    skillParams: McpSkillParams,
    added: NewMcpServer,
    change: McpServerChange,
    source: McpServer,
    summary: McpServerSummary,
  },
};

export function mcpServerRoutes(server: Server, mcpServers: McpServers): void {
  sourceRoutes(server, mcpServers, api);
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
