import { queryOptions } from '@tanstack/react-query';
import { api, type Schema } from './client.ts';

/** With the timeout: a page shows that the platform cannot be reached within five seconds. */
const againMs = 2_000;
/** /health answers within 100 ms; the rest is for the way. */
const timeoutMs = 3_000;

/** The response of /health, also of a 503. Fails without a response. */
export const healthQuery = queryOptions({
  queryKey: ['health'],
  refetchInterval: againMs,
  retry: false,
  async queryFn({ signal }): Promise<Schema<'Health'>> {
    const timeout = AbortSignal.timeout(timeoutMs);
    const { data, error } = await api.GET('/health', {
      signal: AbortSignal.any([signal, timeout]),
    });
    return (data ?? error) as Schema<'Health'>;
  },
});
