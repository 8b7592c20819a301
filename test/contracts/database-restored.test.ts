/**
 * A dump that is restored into a server which is younger than its own: the numbers of transactions
 * in it are ahead of what the server gives out. Readers of the outbox must not notice.
 */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { isAfter, joinReader, readEvents } from '../../src/core/events/reader.ts';
import type { OutboxEvent } from '../../src/core/events/reader-queries.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { engines } from '../support/databases.ts';
import { addEvents, untilReadable } from '../support/outbox.ts';

const reader = 'webhooks';
const log = createLogger('silent');
/** How far the server of the dump was ahead. */
const ahead = 1_000_000_000;

const postgres = (await engines()).filter(({ name }) => name === 'PostgreSQL');

const nameOf = ({ data }: OutboxEvent) => JSON.parse(data).code as string;

/** Reads up to `limit` events; they. */
async function read(database: Database, limit: number): Promise<OutboxEvent[]> {
  await untilReadable(database);
  return database.write(async (tx) => {
    const found: OutboxEvent[] = [];
    await readEvents(tx, reader, limit, async (events) => {
      found.push(...events);
      return events.length;
    });
    return found;
  });
}

/** An active webhook that hears of what happens from now on. */
function activate(database: Database, isFirst: boolean): Promise<void> {
  return database.write(async (tx) => {
    const place = await joinReader(tx, reader, async () => isFirst);
    await tx.insert('webhooks', [
      {
        id: newId(),
        organization_id: 'default',
        agent_id: 'default',
        url: 'https://receiver.test/',
        host: 'receiver.test:443',
        events: '[]',
        secret: '',
        active: 1,
        failing: 0,
        consecutive_failures: 0,
        active_since: place,
        removed: 0,
        last_delivery_at: null,
        created_at: 0,
        updated_at: 0,
      },
    ]);
  });
}

/** What a dump of an older server would have in it. */
async function age(database: Database): Promise<void> {
  const db = database.read.kysely;
  await sql`update events set txid = (txid::text::bigint + ${sql.lit(ahead)})::text::xid8
    where txid > '0'`.execute(db);
  await sql`update event_cursors set txid = (txid::bigint + ${sql.lit(ahead)})::text
    where txid <> '0'`.execute(db);
  for (const { id, active_since } of await places(database)) {
    const aged = active_since.replace(/\d+/g, (digits) => String(Number(digits) + ahead));
    await db.updateTable('webhooks').set({ active_since: aged }).where('id', '=', id).execute();
  }
}

function places(database: Database): Promise<{ id: string; active_since: string }[]> {
  return database.read.kysely
    .selectFrom('webhooks')
    .select(['id', 'active_since'])
    .where('active_since', 'like', '%:%')
    .orderBy('id')
    .execute();
}

/** All that is unread: which event each webhook hears of. */
async function heard(database: Database): Promise<Map<string, string[]>> {
  const events = await read(database, 10_000);
  const webhooks = await database.read.kysely.selectFrom('webhooks').selectAll().execute();
  return new Map(
    webhooks.map(({ id, active_since }) => [
      id,
      events
        .filter((event) => isAfter(event, active_since))
        .map(nameOf)
        .toSorted(),
    ]),
  );
}

describe.each(postgres)('a dump from an older server', (engine) => {
  test('read events are not read again, unread and new events are read once', async () => {
    const place = await engine.place();
    const database = await place.open();
    await database.write((tx) => addEvents(tx, 'before'));
    // A reader that joins earlier begins before it, as a transaction of another test is still open.
    await untilReadable(database);
    await activate(database, true);
    for (const name of ['a', 'b', 'c']) await database.write((tx) => addEvents(tx, name));
    expect((await read(database, 2)).map(nameOf)).toEqual(['a', 'b']);
    await age(database);

    const restored = await openPostgres(place.at, log);
    await restored.write((tx) => addEvents(tx, 'd'));
    const [{ active_since } = { active_since: '' }] = await places(restored);
    const events = await read(restored, 10);

    expect(events.map(nameOf)).toEqual(['c', 'd']);
    expect(events.map((event) => isAfter(event, active_since))).toEqual([true, true]);
    expect(await read(restored, 10)).toEqual([]);
    await restored.close();
  });

  test('without an active webhook, the first one begins at the end', async () => {
    const place = await engine.place();
    const database = await place.open();
    await database.write((tx) => addEvents(tx, 'a'));
    await age(database);

    const restored = await openPostgres(place.at, log);
    await activate(restored, true);
    await restored.write((tx) => addEvents(tx, 'b'));

    expect((await read(restored, 10)).map(nameOf)).toEqual(['b']);
    await restored.close();
  });

  test('each webhook gets the unread events that it would have got', async () => {
    const place = await engine.place();
    const database = await place.open();
    await activate(database, true);
    const open: (() => void)[] = [];
    const under: Promise<void>[] = [];
    let events = 0;
    for (let step = 0; step < 60; step++) {
      const name = `event ${events}`;
      const chance = Math.random();
      if (chance < 0.25) await activate(database, false);
      else if (chance < 0.5) {
        events++;
        await database.write((tx) => addEvents(tx, name));
      } else if (chance < 0.75 && open.length < 4) {
        // One that is appended and not yet committed when others are.
        events++;
        const { promise, resolve } = Promise.withResolvers<void>();
        const appended = Promise.withResolvers<void>();
        open.push(resolve);
        under.push(
          database.write(async (tx) => {
            await addEvents(tx, name);
            appended.resolve();
            await promise;
          }),
        );
        await appended.promise;
      } else open.splice(Math.floor(Math.random() * open.length), 1)[0]?.();
    }
    for (const commit of open) commit();
    await Promise.all(under);
    await read(database, Math.floor(events / 4));
    const [cursor] = await database.read.kysely.selectFrom('event_cursors').selectAll().execute();
    const expected = await heard(database);
    await database.read.kysely
      .updateTable('event_cursors')
      .set(cursor as NonNullable<typeof cursor>)
      .execute();
    await age(database);

    const restored = await openPostgres(place.at, log);

    expect(await heard(restored)).toEqual(expected);
    await restored.write((tx) => addEvents(tx, 'new'));
    const news = await heard(restored);
    expect([...news.values()]).toEqual([...news].map(() => ['new']));
    await restored.close();
  });

  test('unread events that came from SQLite are read too', async () => {
    const place = await engine.place();
    const database = await place.open();
    await activate(database, true);
    for (const name of ['a', 'b']) await database.write((tx) => addEvents(tx, name));
    const db = database.read.kysely;
    await sql`update events set txid = '0'`.execute(db);
    await sql`update event_cursors set txid = '0', seq = 1`.execute(db);
    await sql`update webhooks set active_since = '0'`.execute(db);
    await database.write((tx) => addEvents(tx, 'c'));
    await age(database);

    const restored = await openPostgres(place.at, log);

    const events = await read(restored, 10);
    expect(events.map(nameOf)).toEqual(['b', 'c']);
    expect(events.map((event) => isAfter(event, '0'))).toEqual([true, true]);
    await restored.close();
  });

  test('a database on its own server is not changed', async () => {
    const place = await engine.place();
    const database = await place.open();
    await activate(database, true);
    for (const name of ['a', 'b']) await database.write((tx) => addEvents(tx, name));
    await read(database, 1);
    const all = async () => [
      await database.read.kysely.selectFrom('events').selectAll().orderBy('seq').execute(),
      await database.read.kysely.selectFrom('event_cursors').selectAll().execute(),
      await places(database),
    ];
    const before = await all();

    await (await openPostgres(place.at, log)).close();

    expect(await all()).toEqual(before);
  });
});
