import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, body, pageOf, type Schema } from './client.ts';
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
      body(
        api.GET('/api/agent-triggers/{triggerId}', {
          params: { path: { triggerId }, query: { include: 'refusal' } },
        }),
      ),
    refetchInterval: live,
  });

export const triggerCallsQuery = (triggerId: string, limit: number, offset: number) =>
  queryOptions({
    queryKey: ['triggers', triggerId, 'calls', { limit, offset }],
    queryFn: () =>
      body(
        api.GET('/api/agent-triggers/{triggerId}/calls', {
          params: { path: { triggerId }, query: { limit, offset } },
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });

export const createTrigger = (fields: Partial<Schema<'NewAgentTrigger'>>) =>
  body(api.POST('/api/agent-triggers', { body: fields as Schema<'NewAgentTrigger'> }));

export const changeTrigger = (triggerId: string, changes: Schema<'AgentTriggerChanges'>) =>
  body(
    api.PUT('/api/agent-triggers/{triggerId}', { params: { path: { triggerId } }, body: changes }),
  );

export const deleteTrigger = (triggerId: string) =>
  body(api.DELETE('/api/agent-triggers/{triggerId}', { params: { path: { triggerId } } }));
