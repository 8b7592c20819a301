import type { ScheduledRun } from '../api/schedules.ts';
import { Mark } from './Mark.tsx';

/** One day, a row for each hour in which there was a slot. */
export function Day({
  runs,
  onLook,
}: {
  /** In the order of the clock. */
  runs: readonly ScheduledRun[];
  onLook: (run: ScheduledRun | null) => void;
}) {
  if (runs.length === 0) {
    return <p className="py-8 text-center text-[13px] text-muted">No slots on this day.</p>;
  }
  const hours = new Map<string, ScheduledRun[]>();
  for (const run of runs) {
    const hour = run.scheduled_for.slice(11, 13);
    hours.set(hour, [...(hours.get(hour) ?? []), run]);
  }
  return (
    <ol className="flex flex-col divide-y text-xs">
      {[...hours].map(([hour, inHour]) => (
        <li key={hour} className="flex items-start gap-3 py-2 first:pt-0 last:pb-0">
          <span className="w-9 shrink-0 text-muted tabular-nums">{hour}:00</span>
          <div className="flex min-w-0 flex-wrap gap-1">
            {inHour.map((run) => (
              <Mark key={run.id} run={run} onLook={onLook} />
            ))}
          </div>
        </li>
      ))}
    </ol>
  );
}
