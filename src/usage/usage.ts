/**
 * The ledger as clients read it: the tokens that owners used, by day, with their limits. A count that
 * providers did not report is null, never zero.
 */

import type { Database } from '../database/database.ts';
import type { PageAsked } from '../database/page-bytes.ts';
import { bind } from '../kernel/bind.ts';
import type { Clock } from '../kernel/clock.ts';
import { dayOf, monthRange, rangeOf } from './days.ts';
import { keyOf, type Owner, ownerField } from './owners.ts';
import { leftOf } from './reservation-rule.ts';
import {
  type DayRange,
  type DayRow,
  findBudget,
  listDays,
  listUsage,
  readUse,
  type UsageFilters,
} from './usage.store.ts';

/** The days of a request; see `rangeOf`. */
export type RequestedDays = Partial<{ [K in keyof DayRange]: string | undefined }>;

interface UsageDeps {
  readonly database: Database;
  readonly clock: Clock;
}

export type Usage = ReturnType<typeof createUsage>;

export function createUsage(deps: UsageDeps) {
  return bind(deps, { ofOwner, list });
}

/** An owner's usage on the requested days, today and this month. */
async function ofOwner({ database, clock }: UsageDeps, owner: Owner, asked: RequestedDays) {
  const now = clock.now();
  const range = rangeOf(asked, now);
  const { organizationId } = owner;
  const key = keyOf(owner);
  const today = dayOf(now);
  const budget = await findBudget(database.read, organizationId, key);
  const [use] = await readUse(database.read, organizationId, [key], today, monthRange(today));
  const days = await listDays(database.read, organizationId, key, range);
  const { tokens_per_day = null, tokens_per_month = null } = budget ?? {};
  return {
    ...ownerField(owner),
    ...range,
    limits: { tokens_per_day, tokens_per_month },
    today: periodBody(tokens_per_day, use?.day_used, use?.day_held),
    month: periodBody(tokens_per_month, use?.month_used, use?.month_held),
    days: days.map(dayBody),
  };
}

/** A page of all owners' usage on the requested days, newest first. */
async function list(
  { database, clock }: UsageDeps,
  filters: UsageFilters,
  asked: RequestedDays,
  page: PageAsked,
) {
  const range = rangeOf(asked, clock.now());
  const { rows, total } = await listUsage(database.read, filters, range, page);
  return { data: rows.map((row) => ({ ...row, ...dayBody(row) })), total };
}

function periodBody(limit: number | null, used = 0, held = 0) {
  const left = limit === null ? null : Math.max(0, leftOf({ limit, used, held }));
  return { used, reserved: held, limit, left };
}

function dayBody(row: DayRow) {
  const { day, prompt_tokens, completion_tokens, estimated_tokens, calls, unreported_calls } = row;
  // The sum of the known counts; null when they are all zero and some were not reported.
  const known = (sum: number) => (sum === 0 && unreported_calls > 0 ? null : sum);
  return {
    day,
    prompt_tokens: known(prompt_tokens),
    completion_tokens: known(completion_tokens),
    total_tokens: known(prompt_tokens + completion_tokens),
    estimated_tokens,
    calls,
    unreported_calls,
  };
}
