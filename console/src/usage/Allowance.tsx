import { Meter } from '@base-ui/react/meter';
import type { OwnUsage } from '../api/usage.ts';
import { moneyText } from '../ui/Money.ts';
import { countText } from '../ui/Time.tsx';

/** From this share of a budget on, it is worth a look. */
const nearlyUsed = 0.8;

/** An amount that a budget may limit, and how it is written. */
interface Amount {
  readonly used: number;
  readonly reserved: number;
  readonly limit: number | null;
  readonly left: number | null;
  readonly unit: string;
  text(amount: number): string;
}

/** The usage of a day or month compared with its budgets, in tokens and in money. */
export function Allowance({ label, period }: { label: string; period: OwnUsage['today'] }) {
  const cost: Amount = {
    used: period.used_usd,
    reserved: period.reserved_usd,
    limit: period.limit_usd,
    left: period.left_usd,
    unit: '',
    text: moneyText,
  };
  return (
    <div className="flex min-w-0 flex-col gap-4">
      <AmountUsed
        label={label}
        what="tokens used of the budget"
        amount={{ ...period, unit: ' tokens', text: countText }}
      />
      <AmountUsed
        label={`Cost ${label.toLowerCase()}`}
        what="money used of the budget"
        amount={cost}
        note={period.cost_is_partial ? 'Some calls have no known price.' : null}
      />
    </div>
  );
}

function AmountUsed({
  label,
  what,
  amount,
  note = null,
}: {
  label: string;
  what: string;
  amount: Amount;
  note?: string | null;
}) {
  const { used, reserved, limit, left, unit, text } = amount;
  const share = limit === null ? 0 : used / limit;
  const held = limit === null ? 0 : reserved / limit;
  const colour = share >= 1 ? 'bg-bad' : share >= nearlyUsed ? 'bg-warn' : 'bg-accent';
  const width = (part: number) => ({ width: `${Math.min(1, part) * 100}%` });
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <div className="flex items-baseline justify-between gap-2">
        <h3 className="text-[13px] text-muted">{label}</h3>
        {limit !== null && (
          <span className="text-xs text-muted tabular-nums">{Math.round(share * 100)} %</span>
        )}
      </div>
      <p className="tabular-nums">
        <span className="text-2xl font-semibold tracking-tight">{text(used)}</span>{' '}
        <span className="text-muted">
          {limit === null ? `${unit}, no limit`.replace(/^, /, '') : `of ${text(limit)}${unit}`}
        </span>
      </p>
      {limit !== null && (
        <Meter.Root
          aria-label={`${label}: ${what}`}
          max={limit}
          value={Math.min(used, limit)}
          getAriaValueText={() => `${text(used)} of ${text(limit)}${unit}`}
        >
          <Meter.Track className="flex h-2 overflow-hidden rounded-full bg-hover">
            <div className={colour} style={width(share)} />
            <div className="bg-line-strong" style={width(Math.min(held, 1 - Math.min(1, share)))} />
          </Meter.Track>
        </Meter.Root>
      )}
      <p className="min-h-4 text-xs text-muted tabular-nums">
        {left !== null && `${text(left)} left`}
        {reserved > 0 &&
          `${left === null ? '' : ' · '}${text(reserved)} held back for calls under way`}
        {note !== null && ` ${note}`}
      </p>
    </div>
  );
}
