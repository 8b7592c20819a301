/** The outbox is read by cursor: no event is lost or doubled, in any order of commits. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { beginBacklogs, nextBacklog } from '../../src/core/events/backlogs.ts';
import { hasUnread, isAfter, joinReader, readEvents } from '../../src/core/events/reader.ts';
import {
  dropBacklogs,
  furthestBehind,
  type OutboxEvent,
} from '../../src/core/events/reader-queries.ts';
import { engines } from '../support/databases.ts';
import { addEvents, untilReadable } from '../support/outbox.ts';

const reader = 'a reader';

const nameOf = ({ data }: OutboxEvent) => JSON.parse(data).code as string;

/** Reads once what can be read, as far as `limit`; the names of what was read. */
async function readNow(database: Database, limit = 100): Promise<string[]> {
  const names: string[] = [];
  await database.write((tx) => {
    names.length = 0;
    return readEvents(tx, reader, limit, async (events) => {
      names.push(...events.map(nameOf));
      return events.length;
    });
  });
  return names;
}

/** As `readNow`, of everything that was committed. */
async function readOnce(database: Database, limit?: number): Promise<string[]> {
  await untilReadable(database);
  return readNow(database, limit);
}

const join = (database: Database, isFirst = true) =>
  database.write((tx) => joinReader(tx, reader, async () => isFirst));

describe.each(await engines())('on $name', (engine) => {
  test('a reader gets what happens after it joined, in order, each event once', async () => {
    const database = await engine.fresh();
    await database.write((tx) => addEvents(tx, 'before'));
    expect(await hasUnread(database.read, reader)).toBe(false);
    await untilReadable(database);
    await join(database);
    expect(await hasUnread(database.read, reader)).toBe(false);

    await database.write((tx) => addEvents(tx, 'a', 'b'));
    await database.write((tx) => addEvents(tx, 'c'));

    await untilReadable(database);
    expect(await hasUnread(database.read, reader)).toBe(true);
    expect(await readOnce(database, 2)).toEqual(['a', 'b']);
    expect(await readOnce(database)).toEqual(['c']);
    expect(await readOnce(database)).toEqual([]);
    expect(await hasUnread(database.read, reader)).toBe(false);
  });

  test('the turns of backlogs follow their names, with any collation of the database', async () => {
    const database = await engine.fresh();
    if (engine.name === 'PostgreSQL') {
      // It ignores punctuation, as those of many operating systems do.
      await database.write(async (tx) => {
        await sql`create collation no_punctuation (provider = icu, locale = 'und-u-ka-shifted')`.execute(
          tx.kysely,
        );
        await sql`alter table event_cursors alter column name type text collate no_punctuation`.execute(
          tx.kysely,
        );
      });
    }
    const at = { txid: '0', seq: 1 };
    const backlogs = ['Z', 'a-b', 'a'].map((organizationId) => ({ organizationId, at }));
    await join(database);

    await database.write((tx) => beginBacklogs(tx, reader, backlogs));
    const turns: (string | undefined)[] = [''];
    for (let turn = 0; turn < 4; turn++) {
      turns.push(await nextBacklog(database.read, reader, turns.at(-1) ?? ''));
    }
    await database.write((tx) => dropBacklogs(tx, reader));

    expect(turns.slice(1)).toEqual(['Z', 'a', 'a-b', 'Z']);
    expect(await nextBacklog(database.read, reader, '')).toBeUndefined();
  });

  test('of any number of backlogs the one furthest behind is found, by transaction and then number', async () => {
    const database = await engine.fresh();
    const isSqlite = engine.name === 'SQLite';
    const backlogs = Array.from({ length: 1_001 }, (_, i) => ({
      organizationId: `org-${String(i).padStart(4, '0')}`,
      // As text, 9 is more than 10.
      at: { txid: isSqlite ? '0' : '10', seq: 20 },
    }));
    const last = { txid: isSqlite ? '0' : '9', seq: isSqlite ? 19 : 21 };

    await database.write(async (tx) => {
      await beginBacklogs(tx, reader, backlogs.with(-1, { organizationId: 'the-last', at: last }));
    });

    expect(await furthestBehind(database.read, reader)).toEqual(last);
  });

  test('a reader that joins an existing cursor does not move it', async () => {
    const database = await engine.fresh();
    await join(database);
    await database.write((tx) => addEvents(tx, 'a'));

    await join(database, false);

    expect(await readOnce(database)).toEqual(['a']);
  });

  test('a reader that deals with the first few only gets the others again', async () => {
    const database = await engine.fresh();
    await join(database);
    await database.write((tx) => addEvents(tx, 'a', 'b', 'c'));

    await untilReadable(database);
    await database.write((tx) => readEvents(tx, reader, 100, async () => 1));

    expect(await readOnce(database)).toEqual(['b', 'c']);
  });

  test('a transaction that fails leaves the cursor where it was', async () => {
    const database = await engine.fresh();
    await join(database);
    await database.write((tx) => addEvents(tx, 'a'));

    await untilReadable(database);
    const failing = database.write((tx) =>
      readEvents(tx, reader, 100, async () => {
        throw new Error('it broke');
      }),
    );

    await expect(failing).rejects.toThrow('it broke');
    expect(await readOnce(database)).toEqual(['a']);
  });

  test('a cursor separates events committed before it from later ones', async () => {
    const database = await engine.fresh();
    await join(database);
    await database.write((tx) => addEvents(tx, 'before'));
    const place = await join(database, false);
    await database.write((tx) => addEvents(tx, 'after'));

    await untilReadable(database);
    const events: OutboxEvent[] = [];
    await database.write((tx) =>
      readEvents(tx, reader, 100, async (some) => {
        events.splice(0, events.length, ...some);
        return some.length;
      }),
    );

    expect(events.map((event) => [nameOf(event), isAfter(event, place)])).toEqual([
      ['before', false],
      ['after', true],
    ]);
  });

  test('five readers at once read each of 200 events once, while they are appended', async () => {
    const place = await engine.place();
    const database = await place.open();
    await join(database);
    const readers = await Promise.all(
      [1, 2, 3, 4, 5].map(() => (engine.name === 'SQLite' ? database : place.open())),
    );
    const names = Array.from({ length: 200 }, (_, i) => `event ${i}`);
    let appending = true;

    const reading = readers.map(async (one) => {
      const read: string[] = [];
      do read.push(...(await readNow(one, 7)));
      while (appending || (await hasUnread(one.read, reader)));
      return read;
    });
    await Promise.all(names.map((name) => database.write((tx) => addEvents(tx, name))));
    await untilReadable(database);
    appending = false;

    expect((await Promise.all(reading)).flat().toSorted()).toEqual(names.toSorted());
  });
});

const postgres = (await engines()).filter(({ name }) => name === 'PostgreSQL');

describe.each(postgres)('on $name, where transactions overlap', (engine) => {
  /** A transaction that has appended, and commits when it is told to. */
  async function openTransaction(database: Database, name: string) {
    const appended = Promise.withResolvers<void>();
    const commit = Promise.withResolvers<void>();
    const committed = database.write(async (tx) => {
      await addEvents(tx, name);
      // A statement without an awaited result is sent with the next awaited one.
      await sql`select`.execute(tx.kysely);
      appended.resolve();
      await commit.promise;
    });
    await appended.promise;
    return {
      commit() {
        commit.resolve();
        return committed;
      },
    };
  }

  test('one that appended earlier and commits later is not lost', async () => {
    const database = await engine.fresh();
    await join(database);
    const early = await openTransaction(database, 'early');
    await database.write((tx) => addEvents(tx, 'late'));

    const meanwhile = await readNow(database);
    await early.commit();
    const afterwards = await readOnce(database);

    expect([...meanwhile, ...afterwards]).toEqual(['early', 'late']);
  });

  test('one that was under way when a reader joined counts as after', async () => {
    const database = await engine.fresh();
    await join(database);
    const early = await openTransaction(database, 'early');
    await database.write((tx) => addEvents(tx, 'committed before'));
    const place = await join(database);
    await early.commit();
    await untilReadable(database);

    const after: string[] = [];
    await database.write((tx) =>
      readEvents(tx, reader, 100, async (events) => {
        after.push(...events.filter((event) => isAfter(event, place)).map(nameOf));
        return events.length;
      }),
    );

    expect(after).toEqual(['early']);
  });

  test('while one process reads, another one does not wait for it', async () => {
    const place = await engine.place();
    const [one, other] = [await place.open(), await place.open()];
    await join(one);
    await one.write((tx) => addEvents(tx, 'a'));
    await untilReadable(one);
    const inside = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const reading = one.write((tx) =>
      readEvents(tx, reader, 100, async (events) => {
        inside.resolve();
        await finish.promise;
        return events.length;
      }),
    );
    await inside.promise;

    const read = await readNow(other);
    finish.resolve();

    expect(read).toEqual([]);
    expect(await reading).toBe(true);
    expect(await readOnce(other)).toEqual([]);
  });
});
