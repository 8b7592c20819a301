import { useQuery } from '@tanstack/react-query';
import { wordsOf } from '../api/client.ts';
import { cronPreviewQuery } from '../api/schedules.ts';
import { Time } from '../ui/Time.tsx';
import { localTime, utc } from './zones.ts';

/** The next matches of an expression in a zone, from the platform; in UTC as well where the zone is another. */
export function NextRuns({ expression, zone = utc }: { expression: string; zone?: string }) {
  const { data, error } = useQuery(cronPreviewQuery(expression, zone));
  if (error) return <p className="text-[13px] text-bad-text">{wordsOf(error)}</p>;
  return (
    <>
      <ol
        className="flex min-h-31 flex-col gap-1.5 text-[13px] tabular-nums"
        aria-label="Next runs"
      >
        {data?.next_runs.map((time) => (
          <NextRun key={time} time={time} zone={zone} />
        ))}
      </ol>
      {zone !== utc && <p className="mt-2 text-xs text-muted">Local times of {zone}</p>}
    </>
  );
}

function NextRun({ time, zone }: { time: string; zone: string }) {
  const { weekday, text } = localTime(time, zone);
  const inUtc = localTime(time, utc);
  return (
    <li className="flex flex-wrap justify-between gap-x-3">
      <span>
        <span className="inline-block w-9 text-muted">{weekday}</span>
        {text}
        {zone === utc ? (
          ' UTC'
        ) : (
          <span className="ml-2 text-muted">{inUtc.text.slice(11)} UTC</span>
        )}
      </span>
      <span className="text-muted">
        <Time value={time} />
      </span>
    </li>
  );
}
