/**
 * The ledger as clients read it: the tokens that owners used, by day, with their limits. A count that
 * providers did not report is null, never zero.
 */
import type { Database } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import { type DayRange, dayOf, monthRange, rangeOf } from './days.ts';
import { findOwner, keyOf, type NamedOwner, type OwnerLookups, ownerField } from './owners.ts';
import { leftOf } from './reservation-rule.ts';
import {
  type DayRow,
  findBudget,
  listDays,
  listUsage,
  readUse,
  type UsageFilters,
} from './usage.store.ts';

/** The days of a request; see `rangeOf`. */
export type RequestedDays = Partial<{ [K in keyof DayRange]: string | undefined }>;

export type Usage = ReturnType<typeof createUsage>;

export function createUsage(parts: { database: Database; clock: Clock; owners: OwnerLookups }) {
  const { database, clock, owners } = parts;

  return {
    /** Throws `404 not_found` for an unknown owner. */
    async find(named: NamedOwner): Promise<void> {
      await findOwner(owners, named);
    },

    /** An owner's usage on the requested days, today and this month. */
    async ofOwner(named: NamedOwner, asked: RequestedDays) {
      const owner = await findOwner(owners, named);
      const now = clock.now();
      const range = rangeOf(asked, now);
      const { organizationId } = owner;
      const key = keyOf(owner);
      const today = dayOf(now);
      const budget = await findBudget(database.read, organizationId, key);
      const [use] = await readUse(database.read, organizationId, [key], today, monthRange(today));
      const days = await listDays(database.read, organizationId, key, range);
      const limits = {
        tokens_per_day: budget?.tokens_per_day ?? null,
        tokens_per_month: budget?.tokens_per_month ?? null,
      };
      return {
        ...ownerField(owner),
        ...range,
        limits,
        today: periodBody(limits.tokens_per_day, use?.day_used, use?.day_held),
        month: periodBody(limits.tokens_per_month, use?.month_used, use?.month_held),
        days: days.map(dayBody),
      };
    },

    /** A page of all owners' usage on the requested days, newest first. */
    async list(
      filters: UsageFilters,
      asked: RequestedDays,
      page: { limit: number; offset: number },
    ) {
      const range = rangeOf(asked, clock.now());
      const { rows, total } = await listUsage(database.read, filters, range, page);
      const data = rows.map((row) => ({
        organization_id: row.organization_id,
        owner_kind: row.owner_kind,
        owner_id: row.owner_id,
        ...dayBody(row),
        tokens_per_day: row.tokens_per_day,
        tokens_per_month: row.tokens_per_month,
      }));
      return { data, total };
    },
  };
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
