import { queryOptions } from '@tanstack/react-query';
import { api, body } from './client.ts';

/** As many as a page of the API may have. */
const most = 200;

export const triggersQuery = () =>
  queryOptions({
    queryKey: ['triggers'],
    queryFn: () => body(api.GET('/api/agent-triggers', { params: { query: { limit: most } } })),
  });
