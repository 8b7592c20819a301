import { Meter } from '@base-ui/react/meter';
import type { OwnUsage } from '../api/usage.ts';
import { countText } from '../ui/Time.tsx';

/** From this share of a budget on, it is worth a look. */
const nearlyUsed = 0.8;

/** The usage of a day or month compared with its budget. */
export function Allowance({ label, period }: { label: string; period: OwnUsage['today'] }) {
  const { used, reserved, limit, left } = period;
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
        <span className="text-2xl font-semibold tracking-tight">{countText(used)}</span>{' '}
        <span className="text-muted">
          {limit === null ? 'tokens, no limit' : `of ${countText(limit)} tokens`}
        </span>
      </p>
      {limit !== null && (
        <Meter.Root
          aria-label={`${label}: tokens used of the budget`}
          max={limit}
          value={Math.min(used, limit)}
          getAriaValueText={() => `${countText(used)} of ${countText(limit)} tokens`}
        >
          <Meter.Track className="flex h-2 overflow-hidden rounded-full bg-hover">
            <div className={colour} style={width(share)} />
            <div className="bg-line-strong" style={width(Math.min(held, 1 - Math.min(1, share)))} />
          </Meter.Track>
        </Meter.Root>
      )}
      <p className="min-h-4 text-xs text-muted tabular-nums">
        {left !== null && `${countText(left)} left`}
        {reserved > 0 &&
          `${left === null ? '' : ' · '}${countText(reserved)} held back for calls under way`}
      </p>
    </div>
  );
}
