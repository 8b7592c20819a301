import { queryOptions } from '@tanstack/react-query';
import { api, type Schema } from './client.ts';

const againMs = 10_000;
/** While it cannot be reached. */
const lostAgainMs = 2_000;

/** The response of /health, also of a 503. Fails without a response. */
export const healthQuery = queryOptions({
  queryKey: ['health'],
  refetchInterval: ({ state }) => (state.status === 'error' ? lostAgainMs : againMs),
  retry: false,
  async queryFn(): Promise<Schema<'Health'>> {
    const { data, error } = await api.GET('/health');
    return (data ?? error) as Schema<'Health'>;
  },
});
