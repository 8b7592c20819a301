import { queryOptions } from '@tanstack/react-query';
import { api, body } from './client.ts';

export const webhooksQuery = () =>
  queryOptions({
    queryKey: ['webhooks'],
    queryFn: () => body(api.GET('/api/agent-webhooks')),
  });
