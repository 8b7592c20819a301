import { queryOptions } from '@tanstack/react-query';
import { api, body } from './client.ts';
import { liveMs } from './queries.ts';

/** Those that were heard of lately; for the administrator alone. */
export const processesQuery = () =>
  queryOptions({
    queryKey: ['processes'],
    refetchInterval: liveMs,
    queryFn: () => body(api.GET('/admin/processes')),
  });
