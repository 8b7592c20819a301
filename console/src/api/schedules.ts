import { queryOptions } from '@tanstack/react-query';
import { api, body } from './client.ts';

export const schedulesQuery = () =>
  queryOptions({
    queryKey: ['schedules'],
    queryFn: () => body(api.GET('/api/scheduled-jobs')),
  });
