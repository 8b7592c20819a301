import { sql } from 'kysely';
import pg from 'pg';
import type { Database, Transaction } from '../../src/adapters/database/database.ts';
import { waitFor } from './wait-for.ts';

/** Deadlocks that PostgreSQL has had to resolve in a database, as its sessions told when they ended. */
export async function deadlocksIn(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(
    'select deadlocks::int from pg_stat_database where datname = current_database()',
  );
  await client.end();
  return rows[0].deadlocks;
}

/**
 * A transaction takes `first`; then `other` begins, which is to wait for it; then the transaction takes `second`,
 * which fails where `other` holds that already. Returns what `other` does.
 */
export async function lockedInTurn<T>(
  database: Database,
  first: (tx: Transaction) => Promise<unknown>,
  other: () => Promise<T>,
  second: (tx: Transaction) => Promise<unknown>,
): Promise<T> {
  const isLocked = Promise.withResolvers<void>();
  const goesOn = Promise.withResolvers<void>();
  const holding = database.write(async (tx) => {
    await first(tx);
    isLocked.resolve();
    await goesOn.promise;
    await second(tx);
  });
  await isLocked.promise;
  const result = other();
  await waitFor(() => isBlocked(database), { describe: 'the other one waits' });
  goesOn.resolve();
  await Promise.all([holding, result]);
  return result;
}

/** Whether a transaction of the database waits for a lock of another one, on PostgreSQL. */
export async function isBlocked({ read }: Database): Promise<boolean> {
  const { rows } = await sql<{ n: number }>`select count(*) as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(read.kysely);
  return Number(rows[0]?.n) > 0;
}
