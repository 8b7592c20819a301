import { queryOptions } from '@tanstack/react-query';
import { api, body, pageOf, type Schema } from './client.ts';

/** As many as a page of the API may have: an organization's agents are few. */
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

export const agentQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId],
    queryFn: () => body(api.GET('/api/agents/{agentId}', { params: { path: { agentId } } })),
  });

export const createAgent = (agent: Schema<'NewAgent'>) =>
  body(api.POST('/api/agents', { body: agent }));

export const changeAgent = (agentId: string, changes: Schema<'AgentChanges'>) =>
  body(api.PUT('/api/agents/{agentId}', { params: { path: { agentId } }, body: changes }));

export const deleteAgent = (agentId: string) =>
  body(api.DELETE('/api/agents/{agentId}', { params: { path: { agentId } } }));
