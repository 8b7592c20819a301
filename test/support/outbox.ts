import { sql } from 'kysely';
import type { Database } from '../../src/database/database.ts';
import { waitFor } from './wait-for.ts';

/**
 * Waits until every event recorded so far can be read: on PostgreSQL an open transaction on the same
 * server, in a neighbouring test perhaps, holds back those that began after it.
 */
export async function untilReadable(database: Database): Promise<void> {
  if (database.read.dialect === 'sqlite') return;
  await waitFor(
    async () => {
      const { rows } = await sql`select 1 from events
        where txid >= pg_snapshot_xmin(pg_current_snapshot()) limit 1`.execute(
        database.read.kysely,
      );
      return rows.length === 0;
    },
    { describe: 'no transaction is older than an event' },
  );
}
