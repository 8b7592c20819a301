import { queryOptions } from '@tanstack/react-query';
import { api, type Schema } from './client.ts';

const againMs = 10_000;
/** While it cannot be reached. */
const lostAgainMs = 2_000;

/** The answer of /health: also one of 503 says how the platform is. Fails when there is none. */
export const healthQuery = queryOptions({
  queryKey: ['health'],
  refetchInterval: ({ state }) => (state.status === 'error' ? lostAgainMs : againMs),
  retry: false,
  async queryFn(): Promise<Schema<'Health'>> {
    const { data, error } = await api.GET('/health');
    return (data ?? error) as Schema<'Health'>;
  },
});
