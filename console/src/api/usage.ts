/** The usage and budgets of agents, API keys and scheduled jobs. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { get, put, type QueryOf, remove, type Schema } from './client.ts';

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
          return get('/api/agents/{agentId}/usage', { path });
        case 'api_key':
          return get('/admin/api-keys/{id}/usage', { path });
        case 'scheduled_job':
          return get('/api/scheduled-jobs/{jobId}/usage', { path });
      }
    },
  });

/** Replaces the budget; null is no limit. */
export const setBudget = ({ kind, id }: Owner, budget: Schema<'BudgetFields'>) =>
  put(pathOf[kind], { path: { agentId: id, jobId: id, id }, body: budget });

export const deleteBudget = ({ kind, id }: Owner) =>
  remove(pathOf[kind], { path: { agentId: id, jobId: id, id } });

/** By day and owner, the newest day first; for the administrator. */
export const allUsageQuery = (query: UsageFilters) =>
  queryOptions({
    queryKey: ['usage', 'all', query],
    placeholderData: keepPreviousData,
    queryFn: () => get('/admin/usage', { query }),
  });
