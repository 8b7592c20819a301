import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schema } from '../api/client.ts';
import { classes } from '../ui/classes.ts';
import { moneyText } from '../ui/Money.ts';
import { countText, durationText } from '../ui/Time.tsx';

/** Longer than this is worth a look: a job that is due is taken within some milliseconds. */
const longWaitSeconds = 30;

const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });

const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** A number that fits a tile: millions are rounded. */
const shortCount = (n: number) => (n < 1_000_000 ? countText(n) : short.format(n));

export function Tiles({ statistics }: { statistics: Schema<'Statistics'> }) {
  const { now, totals, window } = statistics;
  const ended = totals.completed + totals.failed;
  const waits = now.oldest_waiting_seconds;
  // The list has the jobs accepted within the window.
  const since = window === 'hour' ? '1h' : '24h';
  const during = window === 'hour' ? 'in the last hour' : 'in the last day';
  return (
    <ul className="grid grid-cols-2 gap-3 md:grid-cols-3 xl:grid-cols-6">
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
        about={totals.total_tokens === 0 ? during : <TokenParts totals={totals} />}
      />
    </ul>
  );
}

/** The parts of the tokens, and below them what they cost, if anything is known of that. */
function TokenParts({ totals }: Pick<Schema<'Statistics'>, 'totals'>) {
  const { prompt_tokens, completion_tokens, cost_usd, cost_is_partial } = totals;
  return (
    <>
      {shortCount(prompt_tokens)} in, {shortCount(completion_tokens)} out
      {cost_usd !== null && cost_usd !== 0 && (
        <span className="block">{moneyText(cost_usd, cost_is_partial)}</span>
      )}
    </>
  );
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
        title={countText(value)}
        className={classes(
          'text-2xl font-semibold tracking-tight tabular-nums',
          tone === 'bad' && 'text-bad-text',
          tone === 'warn' && 'text-warn-text',
        )}
      >
        {shortCount(value)}
      </span>
      <span className="min-h-4 text-xs text-balance text-muted tabular-nums">{about}</span>
    </li>
  );
}
