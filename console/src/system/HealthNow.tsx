import { useQuery } from '@tanstack/react-query';
import type { Schema } from '../api/client.ts';
import { healthQuery } from '../api/health.ts';
import { Problem, Skeleton } from '../ui/Loading.tsx';
import { Facts, Section } from '../ui/Page.tsx';
import { Status } from '../ui/Status.tsx';
import { durationText } from '../ui/Time.tsx';

const words: Record<Schema<'Health'>['status'], string> = {
  ok: 'Everything that the platform needs is there, and it takes work.',
  degraded:
    'It takes work, but something is wrong: jobs may wait longer than they should. The log of the processes says what it is.',
  unhealthy:
    'It cannot serve requests: its database or its queue cannot be reached. It goes on by itself once they are there again.',
};

/** The /health of the answering process. */
export function HealthNow() {
  const { data, isError, refetch } = useQuery(healthQuery);
  return (
    <Section title="Health">
      {isError ? (
        <Problem error={new Error('The platform cannot be reached')} retry={() => void refetch()} />
      ) : data === undefined ? (
        <Skeleton lines={3} />
      ) : (
        <div className="flex flex-col gap-4">
          <div className="flex flex-col items-start gap-2">
            <Status value={data.status} />
            <p className="text-[13px] leading-relaxed">{words[data.status]}</p>
          </div>
          <Facts
            facts={[
              ['Version', data.version],
              [
                'Running for',
                <span key="uptime" className="tabular-nums">
                  {durationText(data.uptime * 1000)}
                </span>,
              ],
            ]}
          />
        </div>
      )}
    </Section>
  );
}
