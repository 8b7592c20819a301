/** The queries that correct waits and leases after the clock was set back. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { setBackMs } from '../../kernel/set-back.ts';
import type { Transaction } from './database.ts';
import { leastOf } from './extremes.ts';
import { statement } from './statement.ts';

interface LeasedTable {
  readonly name: 'jobs' | 'webhook_deliveries';
  /** The status of a row that waits until `due_at`. */
  readonly waiting: string;
  /** The status of a claimed row, whose lease ends at `due_at`. */
  readonly claimed: string;
  /** Further columns with the moment at which a waiting row is due. */
  readonly alsoDue: readonly string[];
  /** The rows that wait for a moment that a client has named, which stays. */
  readonly named?: RawBuilder<SqlBool>;
}

/** When a waiting row can have begun to wait, at the latest: no moment after it is recorded. */
const waitsSince = sql`coalesce(started_at, created_at)`;

/**
 * The function that limits the remaining wait of each row to its delay, and each lease to `leaseMs`. Rows
 * within the tolerance `setBackMs` stay, for example those that another process has brought forward already.
 */
export function createBringForward(table: LeasedTable) {
  const { name, waiting, claimed, alsoDue, named } = table;
  const isNamed = named ?? sql<SqlBool>`false`;
  const shortenWaits = statement<{ now: number; ahead: number }>()((db, p, dialect) => {
    const least = leastOf(dialect);
    const due = ['due_at', ...alsoDue].map(
      (column) => sql`${sql.ref(column)} = ${least}(due_at, ${p('now')} + due_at - ${waitsSince})`,
    );
    const query = sql`update ${sql.table(name)} set ${sql.join(due)},
      started_at = case when started_at > ${p('now')} then ${p('now')} else started_at end
      where status = ${sql.lit(waiting)} and due_at > ${p('now')} and ${waitsSince} > ${p('ahead')}
        and not (${isNamed})`;
    return { compile: () => query.compile(db) };
  });
  const shortenLeases = statement<{ lease_until: number; ahead: number }>()((db, p) => {
    const query = sql`update ${sql.table(name)} set due_at = ${p('lease_until')}
      where status = ${sql.lit(claimed)} and due_at > ${p('ahead')}`;
    return { compile: () => query.compile(db) };
  });
  return async (tx: Transaction, now: number, leaseMs: number): Promise<void> => {
    const leaseUntil = now + leaseMs;
    await tx.each(shortenWaits, [{ now, ahead: now + setBackMs }]);
    await tx.each(shortenLeases, [{ lease_until: leaseUntil, ahead: leaseUntil + setBackMs }]);
  };
}
