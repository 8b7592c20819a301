import { useQuery } from '@tanstack/react-query';
import { healthQuery } from '../api/health.ts';
import { Status } from '../ui/Status.tsx';

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
