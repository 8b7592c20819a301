import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, type Schema } from '../api/client.ts';
import { Status } from '../ui/Status.tsx';

const againMs = 10_000;

/** The answer of /health: also one of 503 says how the platform is. */
export const healthQuery = queryOptions({
  queryKey: ['health'],
  refetchInterval: againMs,
  retry: false,
  async queryFn(): Promise<Schema<'Health'>> {
    const { data, error } = await api.GET('/health');
    return (data ?? error) as Schema<'Health'>;
  },
});

/** How the platform is, on every page. */
export function HealthDot() {
  const { data, isError } = useQuery(healthQuery);
  const status = isError ? 'unreachable' : data?.status;
  return (
    <div className="flex items-center justify-between gap-2 px-2 py-1 text-xs text-muted">
      <span>Platform{data?.version && ` ${data.version}`}</span>
      {status && <Status value={status} {...(isError ? { tone: 'bad' as const } : {})} />}
    </div>
  );
}
