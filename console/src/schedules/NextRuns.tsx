import { useQuery } from '@tanstack/react-query';
import { wordsOf } from '../api/client.ts';
import { cronPreviewQuery } from '../api/schedules.ts';
import { Time } from '../ui/Time.tsx';

const weekday = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone: 'UTC' });

/** The next matches of an expression, from the platform. */
export function NextRuns({ expression }: { expression: string }) {
  const { data, error } = useQuery(cronPreviewQuery(expression));
  if (error) return <p className="text-[13px] text-bad-text">{wordsOf(error)}</p>;
  return (
    <ol className="flex min-h-31 flex-col gap-1.5 text-[13px] tabular-nums" aria-label="Next runs">
      {data?.next_runs.map((time) => (
        <li key={time} className="flex justify-between gap-3">
          <span>
            <span className="inline-block w-9 text-muted">{weekday.format(new Date(time))}</span>
            {time.slice(0, 16).replace('T', ' ')} UTC
          </span>
          <span className="text-muted">
            <Time value={time} />
          </span>
        </li>
      ))}
    </ol>
  );
}
