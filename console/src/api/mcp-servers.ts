/** Outside servers whose tools are skills; for the administrator alone. */
import { queryOptions } from '@tanstack/react-query';
import { api, body, get, type PageRange, post, put, remove, type Schema } from './client.ts';
import { live } from './queries.ts';

export type McpServer = Schema<'McpServer'>;
/** Fields with a default are optional. */
export type McpServerChange = Partial<Schema<'McpServerChange'>>;

export const mcpServersQuery = (page: PageRange) =>
  queryOptions({
    queryKey: ['mcp-servers', page],
    queryFn: () => get('/admin/mcp-servers', { query: page }),
    refetchInterval: live,
  });

export const mcpServerQuery = (name: string) =>
  queryOptions({
    queryKey: ['mcp-servers', name],
    queryFn: () => get('/admin/mcp-servers/{name}', { path: { name } }),
    refetchInterval: live,
  });

/** A version with its pinned definition. */
export const readMcpVersion = (
  name: string,
  { version, skill_name: skillName }: Schema<'RemoteSkillVersion'>,
) =>
  get('/admin/mcp-servers/{name}/skills/{version}/{skillName}', {
    path: { name, version, skillName },
  });

export const addMcpServer = (name: string, server: McpServerChange) =>
  post('/admin/mcp-servers', { body: { name, ...server } as Schema<'NewMcpServer'> });

export const changeMcpServer = (name: string, change: McpServerChange) =>
  put('/admin/mcp-servers/{name}', { path: { name }, body: change as Schema<'McpServerChange'> });

export const refreshMcpServer = (name: string) =>
  post('/admin/mcp-servers/{name}/refresh', { path: { name } });

export const deleteMcpServer = (name: string) =>
  remove('/admin/mcp-servers/{name}', { path: { name } });

/** Accepts or rejects a version by the digest that was read. */
export function decideMcpSkill(
  decision: 'activate' | 'reject',
  name: string,
  { version, skill_name: skillName, digest }: Schema<'RemoteSkillVersion'>,
) {
  const read = { params: { path: { name, version, skillName } }, body: { digest } };
  const path = '/admin/mcp-servers/{name}/skills/{version}/{skillName}';
  return body(
    decision === 'activate' ? api.POST(`${path}/activate`, read) : api.POST(`${path}/reject`, read),
  );
}
