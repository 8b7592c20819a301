/** What became of past slots, by day. */

import { useState } from 'react';
import type { ScheduledRun } from '../api/schedules.ts';
import { Button, IconButton } from '../ui/Button.tsx';
import { ChevronLeft, ChevronRight } from '../ui/icons.tsx';
import { Section } from '../ui/Page.tsx';
import { Day } from './Day.tsx';
import { addDays, addMonths, byDay, dayName, dayOf, monthName, today } from './days.ts';
import { FateIcon } from './Mark.tsx';
import { Month } from './Month.tsx';
import { fateOf, fateWords, outcomeWords, runWords } from './outcomes.ts';

/** Of a day with more slots than this, the hours are shown first. */
const denseFrom = 24;

export function Calendar({
  scheduleId,
  runs,
  total,
  nextRuns,
  view: chosen,
  day = today(),
  onChange,
}: {
  scheduleId: string;
  /** The newest first. */
  runs: readonly ScheduledRun[];
  /** Number of further ones. */
  total: number;
  nextRuns: readonly string[];
  view: string | undefined;
  day: string | undefined;
  onChange: (search: { view: string; day: string }) => void;
}) {
  const [looked, setLooked] = useState<ScheduledRun | null>(null);
  const days = byDay(runs);
  const isDense = [...days.values()].some((list) => list.length > denseFrom);
  const view = chosen ?? (isDense ? 'day' : 'month');
  const isMonth = view === 'month';
  const first = runs.at(-1) ? dayOf(runs.at(-1)?.scheduled_for ?? '') : today();
  const last = isMonth ? dayOf(nextRuns.at(-1) ?? today()) : today();
  const step = (n: number) => (isMonth ? addMonths(day, n) : addDays(day, n));
  const length = isMonth ? 7 : 10;
  const unit = isMonth ? 'month' : 'day';
  return (
    <Section
      title={isMonth ? monthName(day) : dayName(day)}
      actions={
        <>
          <div className="flex">
            <IconButton
              label={`Previous ${unit}`}
              icon={<ChevronLeft />}
              disabled={step(0).slice(0, length) <= first.slice(0, length)}
              onClick={() => onChange({ view, day: step(-1) })}
            />
            <IconButton
              label={`Next ${unit}`}
              icon={<ChevronRight />}
              disabled={step(0).slice(0, length) >= last.slice(0, length)}
              onClick={() => onChange({ view, day: step(1) })}
            />
          </div>
          <Button size="small" onClick={() => onChange({ view: isMonth ? 'day' : 'month', day })}>
            {isMonth ? 'By hour' : 'By day'}
          </Button>
        </>
      }
    >
      {isMonth ? (
        <Month
          scheduleId={scheduleId}
          day={day}
          days={days}
          nextRuns={nextRuns}
          onLook={setLooked}
        />
      ) : (
        <Day runs={days.get(day) ?? []} onLook={setLooked} />
      )}
      <div className="mt-3 flex min-h-10 flex-wrap items-start gap-x-4 gap-y-1.5 border-t pt-3 text-xs text-muted">
        {looked ? <Looked run={looked} /> : <Legend runs={runs} total={total} />}
      </div>
    </Section>
  );
}

/** The mark that is pointed at, in words. */
function Looked({ run }: { run: ScheduledRun }) {
  return (
    <p>
      <strong className="font-medium text-ink">
        {dayOf(run.scheduled_for)} {runWords(run)}
      </strong>{' '}
      · {outcomeWords[run.outcome]}
      {run.message !== null && <> · {run.message}</>}
    </p>
  );
}

function Legend({ runs, total }: { runs: readonly ScheduledRun[]; total: number }) {
  const fates = [...new Set(runs.map(fateOf))];
  if (fates.length === 0) return <p>No past slots yet. Dashed marks are future slots.</p>;
  return (
    <>
      {fates.map((fate) => (
        <span key={fate} className="flex items-center gap-1.5">
          <FateIcon fate={fate} />
          {fateWords[fate]}
        </span>
      ))}
      {total > runs.length && <span className="ml-auto">The last {runs.length} slots, in UTC</span>}
    </>
  );
}
