/** The usage and budgets of agents, API keys and scheduled jobs. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, body, type QueryOf, type Schema } from './client.ts';

/** What tokens are counted for. */
export interface Owner {
  readonly kind: 'agent' | 'api_key' | 'scheduled_job';
  readonly id: string;
}

type UsageFilters = QueryOf<'listUsage'>;

const pathOf = {
  agent: '/api/agents/{agentId}/budget',
  api_key: '/admin/api-keys/{id}/budget',
  scheduled_job: '/api/scheduled-jobs/{jobId}/budget',
} as const;

/** The usage of an owner in the last 30 days, and its budget. */
export type OwnUsage = Omit<Schema<'AgentUsage'>, 'agent_id'>;

/** The last 30 days. */
export const usageQuery = ({ kind, id }: Owner) =>
  queryOptions({
    queryKey: ['usage', kind, id],
    async queryFn(): Promise<OwnUsage> {
      const path = { agentId: id, jobId: id, id };
      switch (kind) {
        case 'agent':
          return body(api.GET('/api/agents/{agentId}/usage', { params: { path } }));
        case 'api_key':
          return body(api.GET('/admin/api-keys/{id}/usage', { params: { path } }));
        case 'scheduled_job':
          return body(api.GET('/api/scheduled-jobs/{jobId}/usage', { params: { path } }));
      }
    },
  });

/** Replaces the budget; null is no limit. */
export const setBudget = ({ kind, id }: Owner, budget: Schema<'BudgetFields'>) =>
  body<unknown>(
    api.PUT(pathOf[kind], {
      params: { path: { agentId: id, jobId: id, id } },
      body: budget,
    }),
  );

export const deleteBudget = ({ kind, id }: Owner) =>
  body<unknown>(api.DELETE(pathOf[kind], { params: { path: { agentId: id, jobId: id, id } } }));

/** By day and owner, the newest day first; for the administrator. */
export const allUsageQuery = (query: UsageFilters) =>
  queryOptions({
    queryKey: ['usage', 'all', query],
    placeholderData: keepPreviousData,
    queryFn: () => body(api.GET('/admin/usage', { params: { query } })),
  });
