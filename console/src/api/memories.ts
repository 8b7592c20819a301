import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { get, type PageRange, post, put, type QueryOf, remove, type Schema } from './client.ts';
import { live } from './queries.ts';

type MemoryFilters = QueryOf<'listMemories'>;

/** Keeps the earlier results until the next arrive, so that typing causes no flicker. */
export const memoriesQuery = (agentId: string, query: MemoryFilters) =>
  queryOptions({
    queryKey: ['memories', agentId, query],
    placeholderData: keepPreviousData,
    queryFn: () => get('/api/agents/{agentId}/memories', { path: { agentId }, query }),
  });

/** A page of the agents that have memories of a user. */
export const agentsOfUserQuery = (userId: string, page: PageRange) =>
  queryOptions({
    queryKey: ['memories', 'of user', userId, page],
    queryFn: () => get('/api/users/{userId}/agents', { path: { userId }, query: { ...page } }),
    refetchInterval: live,
  });

/** The profile of a user; of the version 0 where the agent has none. */
export const profileQuery = (agentId: string, userId: string) =>
  queryOptions({
    queryKey: ['memories', agentId, 'profile', userId],
    queryFn: () => get('/api/agents/{agentId}/profiles/{userId}', { path: { agentId, userId } }),
    refetchInterval: live,
  });

export const putProfile = (agentId: string, userId: string, body: Schema<'ProfileChange'>) =>
  put('/api/agents/{agentId}/profiles/{userId}', { path: { agentId, userId }, body });

export const deleteProfile = (agentId: string, userId: string) =>
  remove('/api/agents/{agentId}/profiles/{userId}', { path: { agentId, userId } });

export const createMemory = (
  agentId: string,
  memory: Schema<'MemoryChanges'> & { user_id?: string },
) =>
  post('/api/agents/{agentId}/memories', {
    path: { agentId },
    body: memory as Schema<'NewMemory'>,
  });

export const changeMemory = (
  { agent_id: agentId, id: memoryId }: Schema<'Memory'>,
  changes: Schema<'MemoryChanges'>,
) =>
  put('/api/agents/{agentId}/memories/{memoryId}', { path: { agentId, memoryId }, body: changes });

export const deleteMemory = ({ agent_id: agentId, id: memoryId }: Schema<'Memory'>) =>
  remove('/api/agents/{agentId}/memories/{memoryId}', { path: { agentId, memoryId } });
