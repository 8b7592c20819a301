import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schema } from '../api/client.ts';
import { classes } from '../ui/classes.ts';
import { moneyText } from '../ui/Money.ts';
import { countText, durationText } from '../ui/Time.tsx';

/** Longer than this is worth a look: a job that is due is taken within some milliseconds. */
const longWaitSeconds = 30;

const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });

export function Tiles({ statistics }: { statistics: Schema<'Statistics'> }) {
  const { now, totals, window } = statistics;
  const ended = totals.completed + totals.failed;
  const waits = now.oldest_waiting_seconds;
  // The list has the jobs accepted within the window.
  const since = window === 'hour' ? '1h' : '24h';
  const during = window === 'hour' ? 'in the last hour' : 'in the last day';
  return (
    <ul className="grid grid-cols-2 gap-3 md:grid-cols-3 lg:grid-cols-6">
      <Tile name="Running now" value={now.active} to="/jobs" search={{ status: 'active' }} />
      <Tile
        name="Queued"
        value={now.queued}
        about={waits === null ? 'none is due' : `oldest waits ${durationText(waits * 1000)}`}
        tone={waits !== null && waits > longWaitSeconds ? 'warn' : undefined}
        to="/jobs"
        search={{ status: 'queued' }}
      />
      <Tile
        name="Waiting"
        value={now.waiting}
        about={now.waiting === 0 ? 'no run waits' : 'without a worker'}
        to="/jobs"
        search={{ status: 'waiting' }}
      />
      <Tile
        name="Completed"
        value={totals.completed}
        about={during}
        to="/jobs"
        search={{ status: 'completed', since }}
      />
      <Tile
        name="Failed"
        value={totals.failed}
        about={ended === 0 ? during : `${percent.format(totals.failed / ended)} of runs`}
        tone={totals.failed > 0 ? 'bad' : undefined}
        to="/jobs"
        search={{ status: 'failed', since }}
      />
      <Tile
        name="Tokens"
        value={totals.total_tokens}
        about={
          totals.total_tokens === 0
            ? during
            : `${countText(totals.prompt_tokens)} in, ${countText(totals.completion_tokens)} out${costText(totals)}`
        }
      />
    </ul>
  );
}

/** Nothing where nothing is known of it. */
function costText({ cost_usd, cost_is_partial }: Schema<'Statistics'>['totals']): string {
  return cost_usd === null || cost_usd === 0 ? '' : `, ${moneyText(cost_usd, cost_is_partial)}`;
}

function Tile({
  name,
  value,
  about,
  tone,
  to,
  search,
}: {
  name: string;
  value: number;
  about?: ReactNode;
  tone?: 'bad' | 'warn' | undefined;
  to?: string;
  search?: Record<string, string>;
}) {
  return (
    <li className="relative max-md:last:odd:col-span-2 flex min-w-0 flex-col gap-0.5 rounded-lg border bg-surface px-4 py-3 shadow-low transition-colors has-[a:hover]:border-line-strong">
      <span className="text-[13px] text-muted">
        {to === undefined ? (
          name
        ) : (
          <Link to={to} search={search ?? {}} className="after:absolute after:inset-0">
            {name}
          </Link>
        )}
      </span>
      <span
        className={classes(
          'text-2xl font-semibold tracking-tight tabular-nums',
          tone === 'bad' && 'text-bad-text',
          tone === 'warn' && 'text-warn-text',
        )}
      >
        {countText(value)}
      </span>
      <span className="min-h-4 truncate text-xs text-muted tabular-nums">{about}</span>
    </li>
  );
}
