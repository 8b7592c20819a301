/** Outside servers whose tools are skills; for the administrator alone. */
import { queryOptions } from '@tanstack/react-query';
import { api, body, type Schema } from './client.ts';
import { liveMs } from './queries.ts';

export type McpServer = Schema<'McpServer'>;

export const mcpServersQuery = (page: { limit: number; offset: number }) =>
  queryOptions({
    queryKey: ['mcp-servers', page],
    queryFn: () => body(api.GET('/admin/mcp-servers', { params: { query: page } })),
    refetchInterval: liveMs,
  });

export const mcpServerQuery = (name: string) =>
  queryOptions({
    queryKey: ['mcp-servers', name],
    queryFn: () => body(api.GET('/admin/mcp-servers/{name}', { params: { path: { name } } })),
    refetchInterval: liveMs,
  });

export const addMcpServer = (server: {
  name: string;
  url: string;
  headers?: Record<string, string>;
}) => body(api.POST('/admin/mcp-servers', { body: server as Schema<'NewMcpServer'> }));

export const refreshMcpServer = (name: string) =>
  body(api.POST('/admin/mcp-servers/{name}/refresh', { params: { path: { name } } }));

export const deleteMcpServer = (name: string) =>
  body(api.DELETE('/admin/mcp-servers/{name}', { params: { path: { name } } }));

/** Accepts a version as it was read: with its digest. */
export const activateMcpSkill = (
  name: string,
  { version, skill_name: skillName, digest }: McpServer['skills'][number],
) =>
  body(
    api.POST('/admin/mcp-servers/{name}/skills/{version}/{skillName}/activate', {
      params: { path: { name, version, skillName } },
      body: { digest },
    }),
  );
