/** What every database has to keep to (`src/adapters/database/database.ts`). */
import type { Selectable } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database, Handle, Transaction } from '../../src/adapters/database/database.ts';
import { idIn } from '../../src/adapters/database/ids-in.ts';
import { listOf, statement } from '../../src/adapters/database/statement.ts';
import type { MessagesTable } from '../../src/adapters/database/tables.ts';
import { engines } from '../support/databases.ts';

const allIds = statement<Record<never, never>>()((db) =>
  db.selectFrom('organizations').select('id').orderBy('id'),
);
const bornAt = statement<{ id: string }>()((db, p) =>
  db.selectFrom('organizations').select('created_at').where('id', '=', p('id')),
);
const between = statement<{ from: number; to: number; not: string }>()((db, p) =>
  db
    .selectFrom('organizations')
    .select(['id', 'created_at'])
    .where('created_at', '>=', p('from'))
    .where('created_at', '<', p('to'))
    .where('id', '!=', p('not'))
    .where('created_at', '>=', p('from'))
    .orderBy('created_at'),
);
const rename = statement<{ id: string; created_at: number }>()((db, p) =>
  db
    .updateTable('organizations')
    .set({ created_at: p('created_at') })
    .where('id', '=', p('id')),
);
const among = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('organizations')
    .select('id')
    .where(idIn(dialect, listOf(p, 'ids')))
    .orderBy('id'),
);

/** Ids of the organizations there are: the rows that these tests write. */
async function idsIn(handle: Handle): Promise<string[]> {
  return (await handle.all(allIds, {})).map(({ id }) => id);
}

const insert = (tx: Transaction, id: string, created_at = 0) =>
  tx.insert('organizations', [{ id, created_at }]);

describe.each(await engines())('on $name', (engine) => {
  describe('a write', () => {
    test('is visible to others only when its promise has resolved, and to itself before', async () => {
      const database = await engine.fresh();

      const seen = await database.write(async (tx) => {
        await insert(tx, 'a');
        return { inside: await idsIn(tx), outside: await idsIn(database.read) };
      });

      expect(seen).toEqual({ inside: ['a'], outside: [] });
      expect(await idsIn(database.read)).toEqual(['a']);
    });

    test('resolves to the result of its unit', async () => {
      const database = await engine.fresh();
      const value = { some: ['thing'] };

      expect(await database.write(async () => value)).toBe(value);
      expect(await database.write(async () => undefined)).toBeUndefined();
    });

    test('whose unit throws changes nothing and rejects with that error', async () => {
      const database = await engine.fresh();
      const thrown = new Error('on purpose');

      const write = database.write(async (tx) => {
        await insert(tx, 'a');
        throw thrown;
      });

      await expect(write).rejects.toBe(thrown);
      expect(await idsIn(database.read)).toEqual([]);
    });

    test('that fails harms no neighbour of the same commit', async () => {
      const database = await engine.fresh();
      await database.write((tx) => insert(tx, 'taken'));

      const outcomes = await Promise.allSettled([
        database.write((tx) => insert(tx, 'first')),
        database.write(async (tx) => {
          await insert(tx, 'thrown away');
          throw new Error('on purpose');
        }),
        database.write((tx) => insert(tx, 'middle')),
        database.write(async (tx) => {
          await insert(tx, 'also thrown away');
          await insert(tx, 'taken');
        }),
        database.write((tx) => insert(tx, 'last')),
      ]);

      expect(outcomes.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'fulfilled',
        'rejected',
        'fulfilled',
      ]);
      expect(await idsIn(database.read)).toEqual(['first', 'last', 'middle', 'taken']);
    });

    test('that violates the schema is not reported as unavailability', async () => {
      const database = await engine.fresh();
      await database.write((tx) => insert(tx, 'taken'));

      const error = await database.write((tx) => insert(tx, 'taken')).catch((cause) => cause);

      expect(error).toBeInstanceOf(Error);
      expect(error.code).not.toBe('service_unavailable');
    });

    test('is one of 200 at once, and each is recorded', async () => {
      const database = await engine.fresh();
      const ids = Array.from({ length: 200 }, (_, i) => `org-${String(i).padStart(3, '0')}`);

      const answers = await Promise.all(
        ids.map((id, i) =>
          database.write(async (tx) => {
            await insert(tx, id, i);
            return tx.first(bornAt, { id });
          }),
        ),
      );

      expect(answers.map((row) => row?.created_at)).toEqual(ids.map((_, i) => i));
      expect(await idsIn(database.read)).toEqual(ids);
    });

    test('that adds to a counter loses no concurrent addition', async () => {
      const database = await engine.fresh();
      await database.write((tx) => insert(tx, 'counter', 0));

      await Promise.all(
        Array.from({ length: 100 }, () =>
          database.write((tx) =>
            tx.kysely
              .updateTable('organizations')
              .set((eb) => ({ created_at: eb('created_at', '+', 1) }))
              .where('id', '=', 'counter')
              .execute(),
          ),
        ),
      );

      expect(await database.read.first(bornAt, { id: 'counter' })).toEqual({ created_at: 100 });
    });
  });

  describe('transactions never nest', () => {
    const nested = /transaction is open already/i;

    test('a write inside a write is refused, and the outer one fails with it', async () => {
      const database = await engine.fresh();

      const outer = database.write(async (tx) => {
        await insert(tx, 'outer');
        await database.write((inner) => insert(inner, 'inner'));
      });

      await expect(outer).rejects.toThrow(nested);
      expect(await idsIn(database.read)).toEqual([]);
    });

    test('a write inside a write is refused however deep the call is', async () => {
      const database = await engine.fresh();
      const later = async () => {
        await Promise.resolve();
        return database.write(async () => 'inner');
      };

      await expect(database.write(async () => await later())).rejects.toThrow(nested);
    });

    test('the writes that follow are not disturbed', async () => {
      const database = await engine.fresh();
      await database.write(() => database.write(async () => {})).catch(() => {});

      await database.write((tx) => insert(tx, 'a'));

      expect(await idsIn(database.read)).toEqual(['a']);
    });

    test('a write begun after another one, or in its hook, is not nested', async () => {
      const database = await engine.fresh();
      let inHook: Promise<void> | undefined;

      await database.write(async (tx) => {
        await insert(tx, 'a');
        tx.afterCommit(() => {
          inHook = database.write((next) => insert(next, 'b'));
        });
      });
      await inHook;
      await database.write((tx) => insert(tx, 'c'));

      expect(await idsIn(database.read)).toEqual(['a', 'b', 'c']);
    });
  });

  describe('after-commit hooks', () => {
    test('run after the commit, in order, and before the write answers', async () => {
      const database = await engine.fresh();
      const story: string[] = [];
      let seenByHook: Promise<string[]> | undefined;

      await database
        .write(async (tx) => {
          tx.afterCommit(() => {
            story.push('first hook');
            seenByHook = idsIn(database.read);
          });
          await insert(tx, 'a');
          tx.afterCommit(() => story.push('second hook'));
          story.push('unit');
        })
        .then(() => story.push('answer'));

      expect(story).toEqual(['unit', 'first hook', 'second hook', 'answer']);
      expect(await seenByHook).toEqual(['a']);
    });

    test('of a unit that throws never run; those of its neighbours do', async () => {
      const database = await engine.fresh();
      const ran: string[] = [];

      await Promise.allSettled([
        database.write(async (tx) => void tx.afterCommit(() => ran.push('before'))),
        database.write(async (tx) => {
          tx.afterCommit(() => ran.push('thrown'));
          throw new Error('on purpose');
        }),
        database.write(async (tx) => void tx.afterCommit(() => ran.push('after'))),
      ]);

      expect(ran.toSorted()).toEqual(['after', 'before']);
    });
  });

  describe('a statement', () => {
    async function withRows(): Promise<Database> {
      const database = await engine.fresh();
      await database.write(async (tx) => {
        for (let i = 0; i < 10; i++) await insert(tx, `org-${i}`, i * 10);
      });
      return database;
    }

    test('takes each parameter by its name, also twice and in another order', async () => {
      const { read } = await withRows();

      expect(await read.all(between, { not: 'org-3', to: 50, from: 20 })).toEqual([
        { id: 'org-2', created_at: 20 },
        { id: 'org-4', created_at: 40 },
      ]);
    });

    test('yields its first row, or undefined', async () => {
      const { read } = await withRows();

      expect(await read.first(between, { from: 20, to: 90, not: '' })).toEqual({
        id: 'org-2',
        created_at: 20,
      });
      expect(await read.first(bornAt, { id: 'nobody' })).toBeUndefined();
      expect(await read.all(between, { from: 900, to: 0, not: '' })).toEqual([]);
    });

    test('runs for each of many parameters, in order, and tells how many rows each changed', async () => {
      const database = await withRows();
      const wanted = ['org-1', 'nobody', 'org-2', 'org-1'];

      const rows = await database.write((tx) =>
        tx.changes(
          rename,
          wanted.map((id, i) => ({ id, created_at: 1_000 + i })),
        ),
      );

      expect(rows).toEqual([1, 0, 1, 1]);
      expect(await database.read.first(bornAt, { id: 'org-1' })).toEqual({ created_at: 1_003 });
      expect(await database.write((tx) => tx.changes(rename, []))).toEqual([]);
    });

    test('runs for each of many parameters, in order, with and without row counts', async () => {
      const database = await withRows();

      const seen = await database.write(async (tx) => {
        await tx.each(rename, [
          { id: 'org-1', created_at: 1_000 },
          { id: 'org-1', created_at: 1_001 },
        ]);
        const between = await tx.first(bornAt, { id: 'org-1' });
        await tx.each(rename, [{ id: 'org-1', created_at: 1_002 }]);
        await tx.each(rename, []);
        return between;
      });

      expect(seen).toEqual({ created_at: 1_001 });
      expect(await database.read.first(bornAt, { id: 'org-1' })).toEqual({ created_at: 1_002 });
    });

    test('gets its own result among several concurrent statements', async () => {
      const { read, write } = await withRows();
      const ask = (handle: Handle) =>
        Promise.all([
          handle.first(bornAt, { id: 'org-3' }),
          handle.first(bornAt, { id: 'nobody' }),
          handle.all(between, { from: 10, to: 21, not: '' }),
          idsIn(handle),
          handle.first(bornAt, { id: 'org-4' }),
        ]);
      const expected = [
        { created_at: 30 },
        undefined,
        [
          { id: 'org-1', created_at: 10 },
          { id: 'org-2', created_at: 20 },
        ],
        expect.arrayContaining(['org-1', 'org-9']),
        { created_at: 40 },
      ];

      expect(await write(ask)).toEqual(expected);
      expect(await ask(read)).toEqual(expected);
    });

    test.each([0, 1, 2, 5_000])('finds rows by %i ids with one parameter', async (n) => {
      const { read } = await withRows();
      const ids = ['org-7', 'org-3', ...Array.from({ length: 5_000 }, (_, i) => `no-${i}`)];

      const rows = await read.all(among, { ids: ids.slice(0, n) });

      const expected = n === 0 ? [] : n === 1 ? ['org-7'] : ['org-3', 'org-7'];
      expect(rows.map(({ id }) => id)).toEqual(expected);
    });

    test('takes ids as data, with any characters', async () => {
      const database = await withRows();
      const odd = `'); drop table organizations; -- "\\ ]`;
      await database.write((tx) => insert(tx, odd));

      const rows = await database.read.all(among, { ids: [odd, '%', '_', 'null'] });

      expect(rows).toEqual([{ id: odd }]);
      expect(await idsIn(database.read)).toHaveLength(11);
    });
  });

  describe('an insert', () => {
    const message = (i: number): Selectable<MessagesTable> => ({
      conversation_id: 'c',
      id: `m-${String(i).padStart(6, '0')}`,
      job_id: 'j',
      role: 'assistant',
      content: `text ${i}`,
      model: null,
      prompt_tokens: i,
      completion_tokens: 0,
      unreported: 0,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      cost: null,
      dialogue: 0,
      data: null,
      created_at: i,
    });
    const countOf = async (handle: Handle) => {
      const query = handle.kysely.selectFrom('messages');
      const row = await query.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
      return Number(row?.n);
    };

    test('of no rows does nothing', async () => {
      const database = await engine.fresh();

      await database.write((tx) => tx.insert('messages', []));

      expect(await countOf(database.read)).toBe(0);
    });

    test('of 20,000 rows is one write like any other', async () => {
      const database = await engine.fresh();

      await database.write((tx) =>
        tx.insert(
          'messages',
          Array.from({ length: 20_000 }, (_, i) => message(i)),
        ),
      );

      expect(await countOf(database.read)).toBe(20_000);
      const last = await database.read.kysely
        .selectFrom('messages')
        .selectAll()
        .orderBy('id', 'desc')
        .executeTakeFirst();
      expect(last).toEqual(message(19_999));
    });

    test('of rows of megabytes is one write like any other', async () => {
      const database = await engine.fresh();
      const rows = Array.from({ length: 5 }, (_, i) => ({
        ...message(i),
        content: `"\\${i}`.repeat(500_000),
      }));

      await database.write((tx) => tx.insert('messages', rows));

      const read = await database.read.kysely.selectFrom('messages').selectAll().execute();
      expect(read.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(rows);
    });

    test('that fails also fails its write', async () => {
      const database = await engine.fresh();
      let hookRan = false;
      await database.write((tx) => insert(tx, 'taken'));

      const write = database.write(async (tx) => {
        tx.afterCommit(() => {
          hookRan = true;
        });
        await insert(tx, 'before');
        await insert(tx, 'taken');
        await insert(tx, 'after');
      });

      await expect(write).rejects.toThrow(/unique/i);
      expect(hookRan).toBe(false);
      expect(await idsIn(database.read)).toEqual(['taken']);
    });

    test('with an invalid row inserts no row', async () => {
      const database = await engine.fresh();

      const write = database.write((tx) => tx.insert('messages', [message(1), message(1)]));

      await expect(write).rejects.toThrow();
      expect(await countOf(database.read)).toBe(0);
    });
  });

  describe('a written value is read unchanged', () => {
    test.each([
      ['emoji and joiners', '👩‍👩‍👧 😀 🏳️‍🌈'],
      ['right to left', 'مرحبا \u202eabc\u202c שלום'],
      ['quotes and SQL', `'; drop table jobs; -- "" \\ \` $1 ? :a %s`],
      ['line breaks and controls', 'a\r\nb\tc\u0001\u001f\u007f'],
      ['combining marks, not normalized', 'e\u0301 é ﬁ ſ'],
      ['the last code points', '\uffff \ufffe \u{10ffff}'],
      ['spaces around', '  padded  '],
      ['nothing', ''],
      ['64 KiB', '😀'.repeat(16_384)],
    ])('%s', async (_, text) => {
      const database = await engine.fresh();
      const row = {
        id: 'x',
        organization_id: text.slice(0, 100),
        client_name: text,
        key_hash: 'h',
        scopes: JSON.stringify([text]),
        rate_limit: 1,
        enabled: 1,
        created_at: 0,
        expires_at: null,
        console: 0,
      };

      await database.write((tx) => tx.insert('api_keys', [row]));

      const read = await database.read.kysely.selectFrom('api_keys').selectAll().execute();
      expect(read).toEqual([row]);
    });

    test.each([0, -1, 1_795_176_000_123, 8_640_000_000_000_000, Number.MAX_SAFE_INTEGER])(
      'the moment %i, as a number',
      async (moment) => {
        const database = await engine.fresh();
        await database.write((tx) => insert(tx, 'x', moment));

        expect(await database.read.first(bornAt, { id: 'x' })).toEqual({ created_at: moment });
        const sum = await database.read.kysely
          .selectFrom('organizations')
          .select((eb) => [
            eb.fn.sum<number>('created_at').as('sum'),
            eb.fn.countAll<number>().as('n'),
          ])
          .executeTakeFirst();
        expect(sum).toEqual({ sum: moment, n: 1 });
      },
    );

    test('null, as null', async () => {
      const database = await engine.fresh();
      const { read } = database;

      const empty = await read.kysely
        .selectFrom('organizations')
        .select((eb) => eb.fn.sum<number | null>('created_at').as('sum'))
        .executeTakeFirst();

      expect(empty).toEqual({ sum: null });
    });
  });

  describe('a database that is opened', () => {
    test('has its schema, and keeps its rows when it is opened again', async () => {
      const place = await engine.place();
      const first = await place.open();
      await first.write((tx) => insert(tx, 'a'));
      await first.close();

      const second = await place.open();

      expect(await idsIn(second.read)).toEqual(['a']);
      await second.write((tx) => insert(tx, 'b'));
    });

    test('and was last used by a newer version is refused with a message and not changed', async () => {
      const place = await engine.place();
      const first = await place.open();
      await first.write(async (tx) => {
        await insert(tx, 'a');
        await migrations(tx).insertInto('kysely_migration').values(future).execute();
      });
      await first.close();

      await expect(place.open()).rejects.toThrow(
        /^The database was last used by a newer Skillwright \(it has migration 9999-future\)/,
      );
      // Nothing is held by the attempt: another one gets the same answer.
      await expect(place.open()).rejects.toThrow('a newer Skillwright');
    });

    test('answers pings and counts its connections', async () => {
      const database = await engine.fresh();

      await database.ping();

      const { active, idle } = database.connections();
      expect(active).toBeGreaterThanOrEqual(0);
      expect(idle).toBeGreaterThan(0);
    });
  });

  describe('a database that closes', () => {
    test('waits for the writes under way', async () => {
      const place = await engine.place();
      const database = await place.open();

      const writes = Array.from({ length: 20 }, (_, i) =>
        database.write((tx) => insert(tx, `org-${i}`)),
      );
      await Promise.all([...writes, database.close()]);

      expect(await idsIn((await place.open()).read)).toHaveLength(20);
    });

    test('refuses later calls with service_unavailable', async () => {
      const database = await engine.fresh();
      await database.close();

      await expect(database.write(async () => {})).rejects.toMatchObject({
        code: 'service_unavailable',
      });
      await expect(idsIn(database.read)).rejects.toMatchObject({ code: 'service_unavailable' });
      await expect(database.ping()).rejects.toThrow();
    });
  });
});

const future = { name: '9999-future', timestamp: '2099-01-01T00:00:00.000Z' };

/** The table in which Kysely notes what was migrated. */
function migrations(tx: Transaction) {
  return tx.kysely.withTables<{ kysely_migration: { name: string; timestamp: string } }>();
}
