import { queryOptions } from '@tanstack/react-query';
import { api, body, type Schema } from './client.ts';
import { liveMs } from './queries.ts';

export type Window = Schema<'Statistics'>['window'];

export const statisticsQuery = (window: Window) =>
  queryOptions({
    queryKey: ['statistics', window],
    refetchInterval: liveMs,
    queryFn: () => body(api.GET('/api/statistics', { params: { query: { window } } })),
  });
