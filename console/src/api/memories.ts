import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, body, type PageAsked, type QueryOf, type Schema } from './client.ts';
import { live } from './queries.ts';

type MemoryFilters = QueryOf<'listMemories'>;

/** Keeps the earlier results until the next arrive, so that typing causes no flicker. */
export const memoriesQuery = (agentId: string, query: MemoryFilters) =>
  queryOptions({
    queryKey: ['memories', agentId, query],
    placeholderData: keepPreviousData,
    queryFn: () =>
      body(api.GET('/api/agents/{agentId}/memories', { params: { path: { agentId }, query } })),
  });

/** A page of the agents that have memories of a user. */
export const agentsOfUserQuery = (userId: string, page: PageAsked) =>
  queryOptions({
    queryKey: ['memories', 'of user', userId, page],
    queryFn: () =>
      body(
        api.GET('/api/users/{userId}/agents', { params: { path: { userId }, query: { ...page } } }),
      ),
    refetchInterval: live,
  });

export const createMemory = (
  agentId: string,
  memory: Schema<'MemoryChanges'> & { user_id?: string },
) =>
  body(
    api.POST('/api/agents/{agentId}/memories', {
      params: { path: { agentId } },
      body: memory as Schema<'NewMemory'>,
    }),
  );

export const changeMemory = (
  { agent_id: agentId, id: memoryId }: Schema<'Memory'>,
  changes: Schema<'MemoryChanges'>,
) =>
  body(
    api.PUT('/api/agents/{agentId}/memories/{memoryId}', {
      params: { path: { agentId, memoryId } },
      body: changes,
    }),
  );

export const deleteMemory = ({ agent_id: agentId, id: memoryId }: Schema<'Memory'>) =>
  body(
    api.DELETE('/api/agents/{agentId}/memories/{memoryId}', {
      params: { path: { agentId, memoryId } },
    }),
  );
