/**
 * Caps: how many rows of a table an organization may have. A cap is checked in the transaction that
 * adds a row, and holds the organization until that transaction ends, so it is exact however many
 * requests and processes add rows at once. Nothing here deletes: an organization that is above a cap
 * (because the operator lowered it) keeps what it has and can add nothing.
 */
import { type SqlBool, sql } from 'kysely';
import { PlatformError } from '../../kernel/errors.ts';
import type { Transaction } from './database.ts';

type CappedTable =
  | 'agents'
  | 'api_keys'
  | 'agent_triggers'
  | 'scheduled_jobs'
  | 'webhook_listeners'
  | 'webhooks';

export interface Cap {
  readonly table: CappedTable;
  /** Rows counted beside being the organization's; all of them when it is left out. */
  readonly where?: Readonly<Record<string, string | number>>;
  /** The rows as the error names them: `webhooks`. */
  readonly things: string;
  /** Who has them, for the error; `The organization` when it is left out. */
  readonly owner?: string;
  /** What makes room, for the error; `delete one first` when it is left out. */
  readonly remedy?: string;
  /** The number of rows; infinity is no cap. */
  readonly max: number;
}

/**
 * Throws `409 conflict` unless the organization may have one row more under each of the caps. Other
 * transactions that ask for the same organization wait until this one has ended. Call it before the
 * transaction locks anything else.
 */
export async function requireRoom(
  tx: Transaction,
  organizationId: string,
  caps: readonly Cap[],
): Promise<void> {
  const finite = caps.filter(({ max }) => Number.isFinite(max));
  if (finite.length === 0) return;
  if (tx.dialect === 'postgres') {
    // SQLite has one writer at a time. Keys that refer to the organization are not held up.
    await sql`select id from organizations where id = ${organizationId} for no key update`.execute(
      tx.kysely,
    );
  }
  for (const cap of finite) {
    if ((await countUpTo(tx, organizationId, cap)) < cap.max) continue;
    const { owner = 'The organization', things, remedy = 'delete one first' } = cap;
    const count = cap.max.toLocaleString('en-US');
    throw new PlatformError(
      'conflict',
      `${owner} has ${count} ${things}, which is as many as it may have: ${remedy}`,
    );
  }
}

/** The rows that a cap counts, no further than its maximum. */
async function countUpTo(tx: Transaction, organizationId: string, cap: Cap): Promise<number> {
  const conditions = Object.entries({ organization_id: organizationId, ...cap.where }).map(
    ([column, value]) => sql<SqlBool>`${sql.ref(column)} = ${value}`,
  );
  const { rows } = await sql<{ n: number }>`select count(*) as n from (
    select 1 from ${sql.table(cap.table)} where ${sql.join(conditions, sql` and `)}
    limit ${cap.max}) as counted`.execute(tx.kysely);
  return Number(rows[0]?.n ?? 0);
}
