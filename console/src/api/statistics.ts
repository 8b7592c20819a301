import { queryOptions } from '@tanstack/react-query';
import { get, type Schema } from './client.ts';
import { live } from './queries.ts';

export type Window = Schema<'Statistics'>['window'];

export const statisticsQuery = (window: Window) =>
  queryOptions({
    queryKey: ['statistics', window],
    refetchInterval: live,
    queryFn: () => get('/api/statistics', { query: { window } }),
  });
