/**
 * Budgets: the tokens and dollars that an owner may use in a day and in a month, in UTC. A change applies from the
 * next reservation on; calls under way finish.
 */
import type { Database, Transaction } from '../../adapters/database/database.ts';
import { type Caller, requireScopes } from '../../kernel/caller.ts';
import { type Clock, timestampOrNull } from '../../kernel/clock.ts';
import { nanoOf, usdOrNull } from '../../kernel/money.ts';
import type { Context } from '../context/context.ts';
import { setAsideUse } from './embedding-calls.ts';
import {
  findOwner,
  keyOf,
  lockOwner,
  type NamedOwner,
  type Owner,
  type OwnerLookups,
  ownerField,
} from './owners.ts';
import {
  type BudgetRow,
  deleteBudget,
  findBudget,
  type OwnerKey,
  renameUserUsage,
  replaceBudget,
} from './usage.store.ts';

/** Tokens, and US dollars. A limit that is left out or null does not apply. */
export interface BudgetFields {
  tokens_per_day?: number | null;
  tokens_per_month?: number | null;
  usd_per_day?: number | null;
  usd_per_month?: number | null;
}

/** The scopes of keys that may set and delete budgets. */
export const budgetScopes: readonly string[] = ['budgets'];

/** The budgets of all owners. */
export class Budgets {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #owners: OwnerLookups;

  constructor({ database, clock }: Context, owners: OwnerLookups) {
    this.#database = database;
    this.#clock = clock;
    this.#owners = owners;
  }

  /** The owner, or `404 not_found`. */
  findOwner(named: NamedOwner): Promise<Owner> {
    return findOwner(this.#owners, named);
  }

  /** The budget, all null when there is none. */
  async get(owner: Owner) {
    return budgetBody(
      owner,
      await findBudget(this.#database.read, owner.organizationId, keyOf(owner)),
    );
  }

  /** Replaces the budget; `404` for an owner that was deleted meanwhile. */
  async put(owner: Owner, fields: BudgetFields) {
    const row: BudgetRow = {
      organization_id: owner.organizationId,
      ...keyOf(owner),
      tokens_per_day: fields.tokens_per_day ?? null,
      tokens_per_month: fields.tokens_per_month ?? null,
      cost_per_day: nanoOrNull(fields.usd_per_day),
      cost_per_month: nanoOrNull(fields.usd_per_month),
      updated_at: this.#clock.now(),
    };
    await this.#database.write(async (tx) => {
      await lockOwner(this.#owners, tx, owner);
      await replaceBudget(tx, row);
    });
    return budgetBody(owner, row);
  }

  /** Deletes the budget; succeeds also when there is none. */
  async remove(owner: Owner): Promise<void> {
    await this.#database.write(async (tx) => {
      await deleteBudget(tx, owner.organizationId, keyOf(owner));
    });
  }
}

/** A new agent begins with nothing used. A deleted one loses its budget; its usage is kept. */
export const budgetsOfAgent = {
  begin: setAsideUse,
  remove: (tx: Transaction, organizationId: string, id: string, writer: Scoped) =>
    deleteWithOwner(tx, organizationId, { owner_kind: 'agent', owner_id: id }, writer),
};

/** A deleted scheduled job loses its budget; its usage is kept. */
export function removeBudgetOfScheduledJob(
  tx: Transaction,
  { organizationId, scopes }: Caller,
  id: string,
): Promise<void> {
  const owner = { owner_kind: 'scheduled_job', owner_id: id } as const;
  return deleteWithOwner(tx, organizationId, owner, { scopes });
}

type Scoped = Pick<Caller, 'scopes'>;

/** Throws `403` where there is a budget, without its scope: a new owner of the same id would have none. */
async function deleteWithOwner(
  tx: Transaction,
  organizationId: string,
  owner: OwnerKey,
  { scopes }: Scoped,
): Promise<void> {
  const isDeleted = await deleteBudget(tx, organizationId, owner);
  if (isDeleted) requireScopes(scopes, budgetScopes);
}

/** The limits of a budget as clients read them; all null without one. */
export function limitsBody(row: LimitsRow | undefined) {
  return {
    tokens_per_day: row?.tokens_per_day ?? null,
    tokens_per_month: row?.tokens_per_month ?? null,
    usd_per_day: usdOrNull(row?.cost_per_day ?? null),
    usd_per_month: usdOrNull(row?.cost_per_month ?? null),
  };
}

type LimitsRow = {
  readonly [K in 'tokens_per_day' | 'tokens_per_month' | 'cost_per_day' | 'cost_per_month']:
    | number
    | null;
};

/** Counts the use of an erased user for another id, because sums are kept. */
export async function renameUsageOfUser(
  tx: Transaction,
  organizationId: string,
  userId: string,
  renamed: string,
): Promise<void> {
  if (userId !== renamed) await renameUserUsage(tx, organizationId, userId, renamed);
}

/** At least a nano-dollar, so that a limit never becomes zero by rounding. */
const nanoOrNull = (usd: number | null | undefined) =>
  usd == null ? null : Math.max(1, nanoOf(usd));

function budgetBody(owner: Owner, row: BudgetRow | undefined) {
  return {
    ...ownerField(owner),
    ...limitsBody(row),
    updated_at: timestampOrNull(row?.updated_at ?? null),
  };
}
