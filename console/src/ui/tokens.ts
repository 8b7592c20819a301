/** The tokens and the cost of a job or a conversation, with those of the jobs that it has started. */
import type { Schema } from '../api/client.ts';
import { moneyText } from './Money.ts';
import { countText } from './Time.tsx';

type Stats = Schema<'TokenStats'>;
interface Sums {
  readonly nested_token_stats: Stats;
  readonly total_token_stats: Stats;
}

export function tokensFact({ total_token_stats: total, nested_token_stats: nested }: Sums): string {
  const all = `${countText(total.prompt_tokens)} in, ${countText(total.completion_tokens)} out`;
  return nested.total_tokens === 0
    ? all
    : `${all}, of which ${countText(nested.total_tokens)} in jobs below`;
}

/** Null where nothing was spent. */
export function costFact({ total_token_stats: total, nested_token_stats: nested }: Sums) {
  if (total.cost_usd === 0) return null;
  const all = moneyText(total.cost_usd, total.cost_is_partial);
  if (nested.cost_usd === 0) return all;
  return `${all}, of which ${moneyText(nested.cost_usd, nested.cost_is_partial)} in jobs below`;
}
