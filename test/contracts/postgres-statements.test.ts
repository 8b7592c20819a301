/** How statements travel to PostgreSQL: together, prepared, and skipped after one that fails. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Handle, Transaction } from '../../src/adapters/database/database.ts';
import { statement } from '../../src/adapters/database/statement.ts';
import { engines } from '../support/databases.ts';

const byId = statement<{ id: string }>()((db, p) =>
  db.selectFrom('organizations').selectAll().where('id', '=', p('id')),
);
const rename = statement<{ id: string; to: string }>()((db, p) =>
  db
    .updateTable('organizations')
    .set({ id: p('to') })
    .where('id', '=', p('id')),
);
const insert = (tx: Transaction, id: string) => tx.insert('organizations', [{ id, created_at: 0 }]);
const idsIn = async ({ kysely }: Handle) => {
  const rows = await kysely.selectFrom('organizations').select('id').orderBy('id').execute();
  return rows.map(({ id }) => id);
};

const postgres = (await engines()).filter(({ name }) => name === 'PostgreSQL');

describe.each(postgres)('on $name', (engine) => {
  async function withRows() {
    const database = await engine.fresh();
    await database.write(async (tx) => {
      await insert(tx, 'a');
      await insert(tx, 'b');
    });
    return database;
  }

  test('of statements that go together, those before one that fails are answered, those after it fail', async () => {
    const database = await withRows();
    let outcomes: PromiseSettledResult<unknown>[] = [];

    const write = database.write(async (tx) => {
      outcomes = await Promise.allSettled([
        tx.first(byId, { id: 'a' }),
        tx.changes(rename, [{ id: 'a', to: 'b' }]),
        tx.first(byId, { id: 'b' }),
      ]);
    });

    // The unit did not report the failure; the write is refused all the same.
    await expect(write).rejects.toMatchObject({ code: '23505' });
    expect(outcomes).toMatchObject([
      { status: 'fulfilled', value: { id: 'a' } },
      { status: 'rejected', reason: { code: '23505' } },
      { status: 'rejected', reason: { code: '23505' } },
    ]);
    expect(await idsIn(database.read)).toEqual(['a', 'b']);
  });

  test('a statement after one that failed fails with the same reason, and is not run', async () => {
    const database = await withRows();

    const write = database.write(async (tx) => {
      await tx.changes(rename, [{ id: 'a', to: 'b' }]).catch(() => {});
      await expect(tx.first(byId, { id: 'b' })).rejects.toMatchObject({ code: '23505' });
      await expect(idsIn(tx)).rejects.toMatchObject({ code: '23505' });
    });

    await expect(write).rejects.toMatchObject({ code: '23505' });
  });

  test('a connection whose statement failed serves the next ones, the same statement too', async () => {
    const database = await withRows();
    const failing = () => database.write((tx) => tx.changes(rename, [{ id: 'a', to: 'b' }]));

    for (let i = 0; i < 20; i++) {
      await expect(failing()).rejects.toMatchObject({ code: '23505' });
      expect(await database.read.first(byId, { id: 'a' })).toMatchObject({ id: 'a' });
    }

    expect(await database.write((tx) => tx.changes(rename, [{ id: 'a', to: 'c' }]))).toEqual([1]);
  });

  test('a statement that could not be prepared once is prepared when it can be', async () => {
    const database = await withRows();
    const later = statement<{ id: string }>()((db, p) =>
      db
        .withTables<{ later: { id: string } }>()
        .selectFrom('later')
        .selectAll()
        .where('id', '=', p('id')),
    );

    await expect(database.read.all(later, { id: 'x' })).rejects.toMatchObject({ code: '42P01' });
    await database.write((tx) => sql`create table later (id text)`.execute(tx.kysely));

    expect(await database.read.all(later, { id: 'x' })).toEqual([]);
  });

  test('a prepared statement still works after a newer version has added a column', async () => {
    const database = await withRows();
    const both = () =>
      Promise.all([
        database.read.first(byId, { id: 'a' }),
        database.write((tx) => tx.first(byId, { id: 'b' })),
      ]);
    // So often that each connection of the pool has it.
    await Promise.all(Array.from({ length: 30 }, both));

    await database.write((tx) =>
      sql`alter table organizations add column more text default 'new'`.execute(tx.kysely),
    );

    const rows = await Promise.all(Array.from({ length: 30 }, both));
    const expected = [
      { id: 'a', created_at: 0, weight: 1, more: 'new' },
      { id: 'b', created_at: 0, weight: 1, more: 'new' },
    ];
    expect(rows).toEqual(Array(30).fill(expected));
  });

  test('a statement that takes too long fails with its reason, and its connection is used again', async () => {
    const database = await withRows();

    const write = database.write(async (tx) => {
      await sql`set local statement_timeout = 50`.execute(tx.kysely);
      await sql`select pg_sleep(30)`.execute(tx.kysely);
    });

    await expect(write).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(await idsIn(database.read)).toEqual(['a', 'b']);
  });
});
