import { Link } from '@tanstack/react-router';
import type { ScheduledRun } from '../api/schedules.ts';
import { classes } from '../ui/classes.ts';
import { dayName, dayOf, monthName, today, weeksOf } from './days.ts';
import { FateIcon, Mark } from './Mark.tsx';
import { type Fate, fateOf, fateWords } from './outcomes.ts';

const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
/** A day with more shows how many there are of each kind. */
const marksMax = 9;

/** A month, a cell for each day, in it a mark for each slot. */
export function Month({
  scheduleId,
  day,
  days,
  nextRuns,
  onLook,
}: {
  scheduleId: string;
  day: string;
  days: ReadonlyMap<string, readonly ScheduledRun[]>;
  /** Slots to come. */
  nextRuns: readonly string[];
  onLook: (run: ScheduledRun | null) => void;
}) {
  const now = today();
  return (
    <table className="w-full table-fixed border-collapse text-xs">
      <caption className="sr-only">{monthName(day)}</caption>
      <thead>
        <tr>
          {weekdays.map((name) => (
            <th key={name} scope="col" className="pb-1.5 text-left font-medium text-muted">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {weeksOf(day).map((week) => (
          <tr key={week[0]}>
            {week.map((one) => {
              const isIn = one.slice(0, 7) === day.slice(0, 7);
              const coming = nextRuns.filter((time) => dayOf(time) === one);
              return (
                <td
                  key={one}
                  className={classes(
                    'h-16 border p-1 align-top sm:h-19 sm:p-1.5',
                    !isIn && 'bg-sunken',
                  )}
                >
                  <Link
                    to="/schedules/$scheduleId"
                    params={{ scheduleId }}
                    search={{ view: 'day', day: one }}
                    resetScroll={false}
                    aria-label={dayName(one)}
                    aria-current={one === now ? 'date' : undefined}
                    className={classes(
                      'mb-1 inline-flex h-5 min-w-5 items-center justify-center rounded-full tabular-nums hover:underline',
                      one === now ? 'bg-accent px-1 font-medium text-on-accent' : 'text-muted',
                    )}
                  >
                    {Number(one.slice(8))}
                  </Link>
                  <Marks
                    scheduleId={scheduleId}
                    day={one}
                    runs={days.get(one) ?? []}
                    onLook={onLook}
                  />
                  <Coming times={coming} />
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Marks({
  scheduleId,
  day,
  runs,
  onLook,
}: {
  scheduleId: string;
  day: string;
  runs: readonly ScheduledRun[];
  onLook: (run: ScheduledRun | null) => void;
}) {
  if (runs.length === 0) return null;
  if (runs.length <= marksMax) {
    return (
      <div className="flex flex-wrap gap-1">
        {runs.map((run) => (
          <Mark key={run.id} run={run} onLook={onLook} />
        ))}
      </div>
    );
  }
  const counts = new Map<Fate, number>();
  for (const run of runs) counts.set(fateOf(run), (counts.get(fateOf(run)) ?? 0) + run.slots);
  return (
    <div className="flex flex-wrap gap-x-2 gap-y-1">
      {[...counts].map(([fate, count]) => (
        <Link
          key={fate}
          to="/schedules/$scheduleId"
          params={{ scheduleId }}
          search={{ view: 'day', day }}
          resetScroll={false}
          title={`${fateWords[fate]}: ${count}`}
          className="flex items-center gap-1 rounded tabular-nums hover:underline"
        >
          <FateIcon fate={fate} />
          <span className="sr-only">{fateWords[fate]}: </span>
          {count}
        </Link>
      ))}
    </div>
  );
}

function Coming({ times }: { times: readonly string[] }) {
  // Of a dense schedule only the nearest are known, and would look like all of the day.
  if (times.length === 0 || times.length > marksMax) return null;
  const words = `To come: ${times.map((time) => time.slice(11, 16)).join(', ')} UTC`;
  return (
    <div className="mt-1 flex flex-wrap gap-1" role="img" aria-label={words} title={words}>
      {times.map((time) => (
        <span key={time} className="size-4 rounded border border-dashed border-line-strong" />
      ))}
    </div>
  );
}
