/** Tokens by day, as columns. The table beside it has the same numbers for screen readers. */
import { useState } from 'react';
import type { OwnUsage } from '../api/usage.ts';
import { classes } from '../ui/classes.ts';
import { countText } from '../ui/Time.tsx';

type Day = OwnUsage['days'][number];

const parts = [
  { name: 'Prompt', colour: 'bg-accent', of: (day: Day) => day.prompt_tokens },
  { name: 'Completion', colour: 'bg-busy', of: (day: Day) => day.completion_tokens },
  { name: 'Estimated', colour: 'bg-warn', of: (day: Day) => day.estimated_tokens },
] as const;

const dayMs = 86_400_000;
const short = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });
export const dayText = (day: string): string => short.format(new Date(`${day}T00:00:00Z`));

/** All days from first to last, including those without a call. */
function daysOf({ from, to }: OwnUsage): string[] {
  const first = Date.parse(from);
  const count = Math.round((Date.parse(to) - first) / dayMs) + 1;
  return Array.from({ length: count }, (_, i) =>
    new Date(first + i * dayMs).toISOString().slice(0, 10),
  );
}

export function DayBars({ usage }: { usage: OwnUsage }) {
  const [hovered, setHovered] = useState<string | null>(null);
  const days = daysOf(usage);
  const byDay = new Map(usage.days.map((day) => [day.day, day]));
  const sumOf = (day: Day) => parts.reduce((sum, { of }) => sum + (of(day) ?? 0), 0);
  const most = Math.max(1, ...usage.days.map(sumOf));
  const at = hovered ?? usage.to;
  const shown = byDay.get(at);
  return (
    <figure aria-hidden className="min-w-0">
      <figcaption className="mb-3 flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-muted">
        {parts.map(({ name, colour, of }) => (
          <span key={name} className="flex items-center gap-1.5 tabular-nums">
            <span className={classes('size-2 rounded-sm', colour)} />
            {name}
            <strong className="font-medium text-ink">
              {shown === undefined ? 0 : countText(of(shown))}
            </strong>
          </span>
        ))}
        <span className="ml-auto tabular-nums">{at === usage.to ? 'Today' : dayText(at)}</span>
      </figcaption>
      <div
        className="flex h-36 items-stretch border-b border-line-strong"
        onPointerLeave={() => setHovered(null)}
      >
        {days.map((name) => {
          const day = byDay.get(name);
          return (
            <div
              key={name}
              onPointerEnter={() => setHovered(name)}
              className={classes(
                'flex min-w-0 grow basis-0 flex-col-reverse px-px transition-colors sm:px-0.5',
                hovered === name && 'bg-hover',
              )}
            >
              {day &&
                parts.map(({ name: part, colour, of }) => (
                  <div
                    key={part}
                    className={classes('w-full last:rounded-t-sm', colour)}
                    style={{ height: `${((of(day) ?? 0) / most) * 100}%` }}
                  />
                ))}
            </div>
          );
        })}
      </div>
      <div className="mt-1 flex justify-between text-xs text-muted tabular-nums">
        <span>{dayText(usage.from)}</span>
        <span>{dayText(days[Math.floor(days.length / 2)] ?? usage.to)}</span>
        <span>{dayText(usage.to)}</span>
      </div>
    </figure>
  );
}
