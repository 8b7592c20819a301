import { queryOptions } from '@tanstack/react-query';
import { api, get, pageOf, post, put, remove, type Schema } from './client.ts';

/** The largest page of the API: an organization has few agents. */
const most = 200;

export const agentsQuery = () =>
  queryOptions({
    queryKey: ['agents'],
    queryFn: () =>
      pageOf({ limit: most, offset: 0 }, (query) => api.GET('/api/agents', { params: { query } })),
  });

export const agentsPageQuery = (page: number, size: number) =>
  queryOptions({
    queryKey: ['agents', 'page', page],
    queryFn: () =>
      pageOf({ limit: size, offset: (page - 1) * size }, (query) =>
        api.GET('/api/agents', { params: { query } }),
      ),
  });

/** An agent, and the scopes that the session lacks to change it. */
export interface AgentForSession extends Schema<'Agent'> {
  readonly missing_scopes: readonly string[];
}

export const agentQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId],
    async queryFn(): Promise<AgentForSession> {
      const { missing_scopes = [], ...agent } = await get('/api/agents/{agentId}', {
        path: { agentId },
        query: { include: 'missing_scopes' },
      });
      return { ...agent, missing_scopes };
    },
  });

export const createAgent = (agent: Schema<'NewAgent'>) => post('/api/agents', { body: agent });

export const changeAgent = (agentId: string, changes: Schema<'AgentChanges'>) =>
  put('/api/agents/{agentId}', { path: { agentId }, body: changes });

export const deleteAgent = (agentId: string) =>
  remove('/api/agents/{agentId}', { path: { agentId } });

export const agentVersionsQuery = (agentId: string, version: number, page: number, size: number) =>
  queryOptions({
    queryKey: ['agents', agentId, 'versions', version, page],
    queryFn: () =>
      pageOf({ limit: size, offset: (page - 1) * size }, (query) =>
        api.GET('/api/agents/{agentId}/versions', { params: { path: { agentId }, query } }),
      ),
  });

/** `compare`: the version to compare with; the one before it when left out. */
export const agentVersionQuery = (agentId: string, version: number, compare?: number) =>
  queryOptions({
    queryKey: ['agents', agentId, 'version', version, compare ?? null],
    queryFn: () =>
      get('/api/agents/{agentId}/versions/{version}', {
        path: { agentId, version: `${version}` },
        query: compare === undefined ? {} : { compare },
      }),
  });

export const restoreAgentVersion = (agentId: string, version: number) =>
  post('/api/agents/{agentId}/versions/{version}/restore', {
    path: { agentId, version: `${version}` },
  });
