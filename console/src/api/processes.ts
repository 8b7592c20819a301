import { queryOptions } from '@tanstack/react-query';
import { api, body } from './client.ts';
import { live } from './queries.ts';

/** Those that were heard of lately; for the administrator alone. */
export const processesQuery = () =>
  queryOptions({
    queryKey: ['processes'],
    refetchInterval: live,
    queryFn: () => body(api.GET('/admin/processes')),
  });
