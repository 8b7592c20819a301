import { queryOptions } from '@tanstack/react-query';
import { get } from './client.ts';
import { live } from './queries.ts';

/** The live ones; for the administrator alone. */
export const processesQuery = () =>
  queryOptions({
    queryKey: ['processes'],
    refetchInterval: live,
    queryFn: () => get('/admin/processes'),
  });
