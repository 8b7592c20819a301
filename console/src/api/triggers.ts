import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, get, pageOf, post, put, remove, type Schema } from './client.ts';
import { live } from './queries.ts';

export type Trigger = Schema<'AgentTrigger'>;
export type CreatedTrigger = Schema<'CreatedAgentTrigger'>;
export type TriggerCall = Schema<'AgentTriggerCall'>;

/** As many as a page of the API may have. */
const most = 200;

export const triggersQuery = () =>
  queryOptions({
    queryKey: ['triggers'],
    queryFn: () =>
      pageOf({ limit: most, offset: 0 }, (query) =>
        api.GET('/api/agent-triggers', { params: { query: { ...query, include: 'refusal' } } }),
      ),
  });

export const triggerQuery = (triggerId: string) =>
  queryOptions({
    queryKey: ['triggers', triggerId],
    queryFn: () =>
      get('/api/agent-triggers/{triggerId}', {
        path: { triggerId },
        query: { include: 'refusal' },
      }),
    refetchInterval: live,
  });

export const triggerCallsQuery = (triggerId: string, limit: number, offset: number) =>
  queryOptions({
    queryKey: ['triggers', triggerId, 'calls', { limit, offset }],
    queryFn: () =>
      get('/api/agent-triggers/{triggerId}/calls', {
        path: { triggerId },
        query: { limit, offset },
      }),
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });

export const createTrigger = (fields: Partial<Schema<'NewAgentTrigger'>>) =>
  post('/api/agent-triggers', { body: fields as Schema<'NewAgentTrigger'> });

export const changeTrigger = (triggerId: string, changes: Schema<'AgentTriggerChanges'>) =>
  put('/api/agent-triggers/{triggerId}', { path: { triggerId }, body: changes });

export const deleteTrigger = (triggerId: string) =>
  remove('/api/agent-triggers/{triggerId}', { path: { triggerId } });
