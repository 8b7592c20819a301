import { queryOptions } from '@tanstack/react-query';
import { api, body, type Schema } from './client.ts';
import { live } from './queries.ts';

export type Window = Schema<'Statistics'>['window'];

export const statisticsQuery = (window: Window) =>
  queryOptions({
    queryKey: ['statistics', window],
    refetchInterval: live,
    queryFn: () => body(api.GET('/api/statistics', { params: { query: { window } } })),
  });
