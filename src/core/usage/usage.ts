/**
 * The ledger as clients read it: the tokens that owners used and what they cost, by day, with their limits. A count that
 * providers did not report is null, never zero.
 */

import type { Database } from '../../adapters/database/database.ts';
import { deleteAll } from '../../adapters/database/in-batches.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { type Clock, dayMs } from '../../kernel/clock.ts';
import { usdOf, usdOrNull } from '../../kernel/money.ts';
import type { Context } from '../context/context.ts';
import { costOfDay, costOfMonth, tokensOfDay, tokensOfMonth } from './budget-states.ts';
import { limitsBody } from './budgets.ts';
import { dayOf, daysMax, monthRange, rangeOf } from './days.ts';
import { keyOf, type Owner, ownerField } from './owners.ts';
import { leftOf } from './reservation-rule.ts';
import {
  type DayRange,
  type DayRow,
  deleteUsageBefore,
  findBudget,
  listDays,
  listUsage,
  readUse,
  type UsageFilters,
} from './usage.store.ts';

/** The days of a request; see `rangeOf`. */
export type RequestedDays = Partial<{ [K in keyof DayRange]: string | undefined }>;

/** The ledger of all owners, for reading. */
export class UsageLedger {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor({ database, clock }: Context) {
    this.#database = database;
    this.#clock = clock;
  }

  /** An owner's usage on the requested days, today and this month. */
  async ofOwner(owner: Owner, requested: RequestedDays) {
    const now = this.#clock.now();
    const range = rangeOf(requested, now);
    const { organizationId } = owner;
    const key = keyOf(owner);
    const today = dayOf(now);
    const budget = await findBudget(this.#database.read, organizationId, key);
    const [use] = await readUse(
      this.#database.read,
      organizationId,
      [key],
      today,
      monthRange(today),
    );
    const days = await listDays(this.#database.read, organizationId, key, range);
    const limits = limitsBody(budget);
    return {
      ...ownerField(owner),
      ...range,
      limits,
      today: {
        ...periodBody(limits.tokens_per_day, tokensOfDay(use)),
        ...costBody(budget?.cost_per_day ?? null, costOfDay(use), use?.day_partial),
      },
      month: {
        ...periodBody(limits.tokens_per_month, tokensOfMonth(use)),
        ...costBody(budget?.cost_per_month ?? null, costOfMonth(use), use?.month_partial),
      },
      days: days.map(dayBody),
    };
  }

  /** A page of all owners' usage on the requested days, newest first. */
  async list(filters: UsageFilters, requested: RequestedDays, page: PageAsked) {
    const range = rangeOf(requested, this.#clock.now());
    const { rows, total } = await listUsage(this.#database.read, filters, range, page);
    return { data: rows.map(ownerDayBody), total };
  }
}

type OwnerDayRow = Awaited<ReturnType<typeof listUsage>>['rows'][number];

function ownerDayBody(row: OwnerDayRow) {
  const { organization_id, owner_kind, owner_id } = row;
  return { organization_id, owner_kind, owner_id, ...dayBody(row), ...limitsBody(row) };
}

interface PeriodUse {
  readonly used: number;
  readonly held: number;
}

function periodBody(limit: number | null, { used, held }: PeriodUse) {
  return { used, reserved: held, limit, left: leftBody(limit, { used, held }) };
}

function costBody(limit: number | null, use: PeriodUse, partialCalls = 0) {
  return {
    used_usd: usdOf(use.used),
    reserved_usd: usdOf(use.held),
    limit_usd: usdOrNull(limit),
    left_usd: usdOrNull(leftBody(limit, use)),
    cost_is_partial: partialCalls > 0,
  };
}

function leftBody(limit: number | null, use: PeriodUse): number | null {
  return limit === null ? null : Math.max(0, leftOf({ limit, ...use }));
}

function dayBody(row: DayRow) {
  const { prompt_tokens, completion_tokens, unreported_calls, unpriced_calls } = row;
  const isPartial = unreported_calls > 0 || unpriced_calls > 0;
  // The sum of the known counts; null when they are all zero and some were not reported.
  const known = (sum: number) => (sum === 0 && unreported_calls > 0 ? null : sum);
  return {
    day: row.day,
    prompt_tokens: known(prompt_tokens),
    completion_tokens: known(completion_tokens),
    total_tokens: known(prompt_tokens + completion_tokens),
    cache_read_tokens: row.cache_read_tokens,
    cache_write_tokens: row.cache_write_tokens,
    reasoning_tokens: row.reasoning_tokens,
    estimated_tokens: row.estimated_tokens,
    cost_usd: row.cost === 0 && isPartial ? null : usdOf(row.cost),
    estimated_cost_usd: usdOf(row.estimated_cost),
    cost_is_partial: isPartial,
    calls: row.calls,
    unreported_calls,
    unpriced_calls,
  };
}

/** Rows deleted in one transaction. */
const rowsMax = 1_000;

/** Deletes usage older than the most days of a request. Returns the number of rows. */
export function deleteOldUsage(deps: { database: Database; clock: Clock }): Promise<number> {
  const before = dayOf(deps.clock.now() - daysMax * dayMs);
  return deleteAll(deps.database, rowsMax, (tx) => deleteUsageBefore(tx, before, rowsMax));
}
