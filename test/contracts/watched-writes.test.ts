/** A database that refuses writes counts as not writable until a write of its own succeeds. */
import { sql } from 'kysely';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { WatchedWrites } from '../../src/adapters/database/watched-writes.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { type Engine, engines } from '../support/databases.ts';
import { waitFor } from '../support/wait-for.ts';

const unavailable = { code: 'service_unavailable' };
const [sqlite, postgres] = (await engines()) as [Engine, Engine | undefined];

/** Writes more than fits between the rows that are there. */
const writeTo = (database: Database) =>
  database.write((tx) =>
    tx.insert('organizations', [{ id: `a-${'x'.repeat(100_000)}`, created_at: 0 }]),
  );

/** Refuses are repeated here at once, and not every three seconds. */
async function expectRecovery(
  writes: WatchedWrites,
  refuse: () => Promise<unknown>,
  allow: () => Promise<unknown>,
): Promise<void> {
  await writes.check();
  await refuse();
  await expect(writeTo(writes.database)).rejects.toMatchObject(unavailable);

  expect(writes.isWritable()).toBe(false);
  for (let i = 0; i < 3; i++) await expect(writes.check()).rejects.toThrow(/refuses writes: \S/);
  await allow();
  await waitFor(
    () =>
      writes.check().then(
        () => true,
        () => false,
      ),
    { describe: 'a write of its own has succeeded' },
  );
  expect(writes.isWritable()).toBe(true);
  await writeTo(writes.database);
}

test('SQLite without room for another page', async () => {
  const database = await sqlite.fresh();
  const limit = (pages: number) =>
    database.write((tx) => sql.raw(`PRAGMA max_page_count = ${pages}`).execute(tx.kysely));

  // Not fewer than there are.
  await expectRecovery(
    new WatchedWrites(database, 0),
    () => limit(1),
    () => limit(1_000_000_000),
  );
});

test.skipIf(postgres === undefined)('a PostgreSQL that is read-only', async () => {
  const place = await postgres!.place();
  const database = await openPostgres(place.at, createLogger('silent'));
  onTestFinished(() => database.close());
  const name = new URL(place.at).pathname.slice(1);
  const operator = new pg.Client({ connectionString: place.at });
  await operator.connect();
  onTestFinished(() => operator.end());

  await expectRecovery(
    new WatchedWrites(database, 0),
    async () => {
      await operator.query(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`);
      await operator.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      );
      await waitFor(() => database.connections().idle === 0, { describe: 'the pool has noticed' });
    },
    async () => {
      await operator.query('SET default_transaction_read_only = off');
      await operator.query(`ALTER DATABASE "${name}" RESET default_transaction_read_only`);
    },
  );
});

test('a write that fails for its own reason does not count', async () => {
  const writes = new WatchedWrites(await sqlite.fresh(), 0);
  const twice = [
    { id: 'same', created_at: 0 },
    { id: 'same', created_at: 0 },
  ];

  await expect(writes.database.write((tx) => tx.insert('organizations', twice))).rejects.toThrow();

  expect(writes.isWritable()).toBe(true);
  await writes.check();
});
