/** The move of an embedded installation into PostgreSQL, table by table. */
import { existsSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { sql } from 'kysely';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import {
  moveMarkerFile,
  readMoveMarker,
  writeMoveMarker,
} from '../../src/adapters/database/move-marker.ts';
import { openSqlite, sqliteFile } from '../../src/adapters/database/sqlite.ts';
import { moveToPostgres } from '../../src/apps/move/move.ts';
import { planMove } from '../../src/apps/move/plan.ts';
import { isAfter, joinReader, readEvents } from '../../src/core/events/reader.ts';
import type { OutboxEvent } from '../../src/core/events/reader-queries.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { Approvals } from '../../src/platform/approvals/approvals.ts';
import { contextOf } from '../support/context.ts';
import { type Engine, engines, type Place } from '../support/databases.ts';
import { eventsWorld } from '../support/event-waits.ts';
import { completed } from '../support/jobs-world.ts';
import { addEvents, untilReadable } from '../support/outbox.ts';
import { waitFor } from '../support/wait-for.ts';

const log = createLogger('silent');
const all = await engines();
const [sqlite] = all.filter(({ name }) => name === 'SQLite');
const servers = all.filter(({ name }) => name === 'PostgreSQL');

/** A data directory as a platform leaves it that has stopped. */
async function directory(fill: (database: Database) => Promise<void> = async () => {}) {
  const place = (await sqlite?.place()) as Place;
  const database = await openSqlite(place.at, createLogger('silent'));
  await fill(database);
  await database.close();
  return place.at;
}

async function move(dataDir: string, url: string) {
  const tables = new Map<string, number>();
  const onTable = (name: string, rows: number) => void tables.set(name, rows);
  const moved = await moveToPostgres({ dataDir, url, clock: systemClock, log, onTable });
  return { ...moved, tables };
}

/** Values that a text may have to be written and read with care. */
const texts = [
  'plain',
  '',
  'NULL',
  ' ',
  '{"a":"b\\"c","d":[1,2]}',
  'back\\slash\\',
  '"quoted", {braced}, (round)',
  'line\nbreak\r\ttab',
  "O'Hara; -- \\N \\.",
  '日本語 🦊 é\u0301 \u2028 \ufeff \u0001',
];
const integers = [0, 1, -1, 2_147_483_647];
const bigints = [...integers, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];

const bytes = [Buffer.from([]), Buffer.from([0, 255, 92, 34]), Buffer.from('7fff0001', 'hex')];

type Row = Record<string, string | number | Uint8Array | null>;

/** Texts of a form that the database itself reads. */
const formedValues: Record<string, string> = {
  'memories.words': ' quick brown fox ',
  'memories.terms': '\u00b7quick \u00b7brown \u00b7fox \u00a70123',
  'event_cursors.txid': '0',
  'webhooks.active_since': '0',
};

const uniqueColumns = `SELECT name FROM pragma_table_info(?) WHERE pk > 0 UNION
  SELECT c.name FROM pragma_index_list(?) AS i JOIN pragma_index_info(i.name) AS c WHERE i."unique" = 1`;

/** Some rows in every table, with every kind of value in every column that may have it. */
function fillEveryTable(dataDir: string): Map<string, Row[]> {
  const store = new DatabaseSync(sqliteFile(dataDir));
  const filled = new Map<string, Row[]>();
  const tables = store
    .prepare(`SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'`)
    .all()
    .map((row) => String(row['name']))
    .filter((name) => !/^(sqlite|kysely)_/.test(name));
  for (const table of tables) {
    const columns = store.prepare('SELECT * FROM pragma_table_info(?)').all(table);
    const unique = new Set(
      store
        .prepare(uniqueColumns)
        .all(table, table)
        .map((row) => row['name']),
    );
    const rows = Array.from({ length: 25 }, (_, i) => {
      const fields = columns.map((column, c) => {
        const { name = '', notnull } = column as Record<string, string | number>;
        const type = String(column['type']).toLowerCase();
        const isText = type === 'text';
        const formed = formedValues[`${table}.${name}`];
        if (formed !== undefined) return [name, formed];
        if (unique.has(name)) {
          return [name, isText ? `${texts[i % texts.length]} ${i}` : i + 1];
        }
        if (notnull === 0 && (i + c) % 3 === 0) return [name, null];
        const numbers = type === 'integer' ? integers : bigints;
        const values = isText ? texts : type === 'blob' ? bytes : numbers;
        return [name, values[(i + c) % values.length]];
      });
      return Object.fromEntries(fields) as Row;
    });
    filled.set(table, rows);
    const names = Object.keys(rows[0] as Row);
    const insert = store.prepare(
      `INSERT INTO ${table} (${names.map((name) => `"${name}"`).join()}) VALUES (${names.map(() => '?').join()})`,
    );
    for (const row of rows) insert.run(...Object.values(row));
  }
  for (const { seq } of filled.get('memories') as Row[]) {
    store.prepare('INSERT INTO memory_index (rowid, tokens) VALUES (?, ?)').run(seq as number, 'x');
  }
  store.close();
  return filled;
}

/** Bytes as their bits, which is what PostgreSQL gives of those that it keeps as bits. */
const bitsOf = (some: Uint8Array) =>
  [...some].map((byte) => byte.toString(2).padStart(8, '0')).join('');
const inOrder = (rows: readonly Row[]) =>
  rows
    .map((row) =>
      JSON.stringify(
        Object.entries(row).map(([name, value]) => [
          name,
          value instanceof Uint8Array ? bitsOf(value) : value,
        ]),
      ),
    )
    .toSorted();

describe.each(servers)('a move into PostgreSQL', (engine) => {
  test('knows every table and column that there is in either database', async () => {
    const source = (await sqlite?.fresh()) as Database;
    const target = await engine.fresh();

    const { copied, derived } = await planMove(source.read, target.read);

    const planned = [...copied, ...derived].map(({ name }) => name).toSorted();
    const tables = await target.read.kysely.introspection.getTables();
    expect(planned).toEqual(tables.map(({ name }) => name).toSorted());
  });

  test('brings every value of every row of every table', async () => {
    const dataDir = await directory();
    const filled = fillEveryTable(dataDir);
    const place = await engine.place();

    const { tables } = await move(dataDir, place.at);

    const target = await place.open();
    expect(filled.size).toBeGreaterThan(25);
    for (const [table, rows] of filled) {
      const columns = sql.join(Object.keys(rows[0] as Row).map((name) => sql.ref(name)));
      const found = await sql<Row>`select ${columns} from ${sql.table(table)}`.execute(
        target.read.kysely,
      );
      expect(inOrder(found.rows), table).toEqual(inOrder(rows));
      expect(tables.get(table), table).toBe(rows.length);
    }
    expect(tables.get('memory_index')).toBe(filled.get('memories')?.length);
    expect(tables.size).toBe(filled.size + 1);
  });

  test('leaves the indexes that a fresh database has', async () => {
    const indexes = async (database: Database) => {
      const { rows } = await sql<{ definition: string }>`
        select indexdef as definition from pg_indexes where schemaname = current_schema()
        order by 1`.execute(database.read.kysely);
      return rows;
    };
    const place = await engine.place();
    await move(await directory(), place.at);

    expect(await indexes(await place.open())).toEqual(await indexes(await engine.fresh()));
  });

  test('numbers go on after those that were moved', async () => {
    const dataDir = await directory();
    fillEveryTable(dataDir);
    const place = await engine.place();
    await move(dataDir, place.at);
    const target = await place.open();

    await target.write((tx) => addEvents(tx, 'new'));
    const { id } = await target.read.kysely
      .insertInto('memory_owners')
      .values({ organization_id: 'o', agent_id: 'a' })
      .returning('id')
      .executeTakeFirstOrThrow();

    const { seq } = await target.read.kysely
      .selectFrom('events')
      .select((eb) => eb.fn.max('seq').as('seq'))
      .executeTakeFirstOrThrow();
    expect({ seq, id }).toEqual({ seq: 26, id: 26 });
  });

  test('events that were read are not read again, the others once, new ones after them', async () => {
    const place = await engine.place();
    let activeSince = '';
    const dataDir = await directory(async (source) => {
      await source.write((tx) => addEvents(tx, 'before'));
      activeSince = await source.write((tx) => joinReader(tx, 'webhooks', async () => true));
      await source.write((tx) => addEvents(tx, 'a', 'b', 'c', 'd'));
      expect(await read(source, 2)).toMatchObject(['a', 'b']);
    });

    await move(dataDir, place.at);
    const target = await place.open();
    await target.write((tx) => addEvents(tx, 'e'));

    const heard: boolean[] = [];
    expect(await read(target, 2, heard, activeSince)).toEqual(['c', 'd']);
    expect(await read(target, 9, heard, activeSince)).toEqual(['e']);
    expect(await read(target, 9)).toEqual([]);
    expect(heard).toEqual([true, true, true]);
  });

  test('runs that wait go on: an approval is decided, an event comes, a stored one is taken', async () => {
    const hour = 3_600_000;
    const waits = {
      asked: { kind: 'approval', name: 'ship', nth: 0, title: 'Ship?', timeoutMs: hour },
      told: { kind: 'event', name: 'paid', nth: 0, event: 'paid', key: '1', timeoutMs: hour },
      early: { kind: 'event', name: 'sent', nth: 0, event: 'sent', key: '1', timeoutMs: hour },
    };
    type Name = keyof typeof waits;
    const ids = new Map<Name, string>();
    const idOf = (name: Name) => ids.get(name) as string;
    const dataDir = await directory(async (source) => {
      const world = await eventsWorld(sqlite as Engine, { database: source });
      for (const name of ['asked', 'told', 'early'] as const) {
        ids.set(name, (await world.submit()).id);
      }
      for (const name of ['asked', 'told'] as const) {
        const { run, ended } = await world.begin(idOf(name));
        void run.ask('wait', waits[name]);
        await waitFor(() => openWaits(source, idOf(name)), { describe: `${name} waits` });
        run.end({ kind: 'waiting' });
        await ended;
        expect((await world.row(idOf(name))).status).toBe('waiting');
      }
      expect((await world.send({ event: 'sent', key: '1', data: 'early' })).delivered).toBe(0);
      // Webhooks of the test alone, which follow SQLite's numbers.
      await source.write((tx) => tx.kysely.deleteFrom('webhooks').execute());
    });
    const place = await engine.place();

    await move(dataDir, place.at);
    const target = await place.open();
    const world = await eventsWorld(engine, { database: target });
    const approvals = new Approvals(contextOf(world), world.waitEnds);
    const { data } = await approvals.list(
      'default',
      { status: 'pending' },
      { limit: 9, offset: 0 },
    );
    const [approval] = data;
    const by = { kind: 'api_key', id: world.caller.keyId } as const;
    const decision = { status: 'approved', by, reason: 'Checked.' } as const;
    await approvals.decide('default', approval?.approval_id ?? '', decision);
    const { delivered } = await world.send({ event: 'paid', key: '1', data: 'late' });

    expect(data).toMatchObject([{ job_id: idOf('asked'), title: 'Ship?' }]);
    expect(delivered).toBe(1);
    const results = new Map<string, unknown>();
    for (const name of ['asked', 'told', 'early'] as const) {
      const { run, ended } = await world.begin(idOf(name));
      results.set(name, await run.ask('wait', waits[name]));
      run.end(completed());
      await ended;
      const { status, attempt } = await world.row(idOf(name));
      expect([name, status, attempt]).toEqual([name, 'completed', 1]);
    }
    expect(results.get('asked')).toMatchObject({ value: { approved: true, reason: 'Checked.' } });
    expect(results.get('told')).toMatchObject({ value: { data: 'late' } });
    expect(results.get('early')).toMatchObject({ value: { data: 'early' } });
  });

  test('the directory is not used any more, neither embedded nor for another move', async () => {
    const dataDir = await directory();
    const [place, other] = [await engine.place(), await engine.place()];
    const { into, wasThere } = await move(dataDir, place.at);

    expect(wasThere).toBe(false);
    expect(readMoveMarker(dataDir)).toMatchObject({ into, finished_at: expect.any(String) });
    await expect(openSqlite(dataDir, createLogger('silent'))).rejects.toThrow(
      /was moved into PostgreSQL .*: start with DATABASE_URL/,
    );
    for (const { at } of [place, other]) {
      await expect(move(dataDir, at)).rejects.toThrow(/was moved into .* already/);
    }
  });

  test('one that had arrived and was killed before it said so is found to have arrived', async () => {
    const dataDir = await directory(addOrganization);
    const place = await engine.place();
    await move(dataDir, place.at);
    const marker = readMoveMarker(dataDir);
    if (marker === null) throw new Error('There is no marker.');
    writeMoveMarker(dataDir, { ...marker, finished_at: null });
    await expect(openSqlite(dataDir, createLogger('silent'))).rejects.toThrow(
      /begun and not finished/,
    );

    const again = await move(dataDir, place.at);

    expect(again).toMatchObject({ wasThere: true });
    expect(again.tables.size).toBe(0);
    expect(readMoveMarker(dataDir)?.finished_at).not.toBeNull();
  });

  test('one that was killed before it arrived is begun again, into the same database alone', async () => {
    const dataDir = await directory(addOrganization);
    const [place, other] = [await engine.place(), await engine.place()];
    const into = `${new URL(place.at).host}${new URL(place.at).pathname}`;
    writeMoveMarker(dataDir, { id: newId(), into, begun_at: '2026-01-01', finished_at: null });

    await expect(move(dataDir, other.at)).rejects.toThrow(/was begun and may have arrived/);
    await move(dataDir, place.at);

    expect(await organizations(await place.open())).toBe(1);
  });

  test('a marker that cannot be read keeps the embedded platform from starting too', async () => {
    const dataDir = await directory();
    writeFileSync(moveMarkerFile(dataDir), '');

    await expect(openSqlite(dataDir, createLogger('silent'))).rejects.toThrow(
      /was moved into PostgreSQL/,
    );
  });

  describe('is refused, and leaves everything as it was,', () => {
    async function refused(dataDir: string, url: string, sentence: RegExp): Promise<void> {
      const hadMarker = existsSync(moveMarkerFile(dataDir));
      await expect(move(dataDir, url)).rejects.toThrow(sentence);
      expect(existsSync(moveMarkerFile(dataDir))).toBe(hadMarker);
    }

    test('where there is no embedded database', async () => {
      const place = (await sqlite?.emptyPlace()) as Place;
      await refused(place.at, (await engine.place()).at, /DATA_DIR: there is no embedded database/);
      expect(existsSync(sqliteFile(place.at))).toBe(false);
    });

    test('while another process uses the data directory', async () => {
      const place = (await sqlite?.place()) as Place;
      await place.open();
      await refused(place.at, (await engine.place()).at, /is in use by another/);
    });

    test('where the PostgreSQL database has data', async () => {
      const dataDir = await directory(addOrganization);
      const place = await engine.place();
      const target = await place.open();
      await addOrganization(target);

      await refused(dataDir, place.at, /has data already \(rows in organizations\)/);

      expect(await organizations(target)).toBe(1);
      await (await openSqlite(dataDir, createLogger('silent'))).close();
    });

    test('while another transaction locks its tables', async () => {
      const place = await engine.place();
      const target = await place.open();
      const release = Promise.withResolvers<void>();
      const held = Promise.withResolvers<void>();
      const holding = target.write(async (tx) => {
        await addOrganization({ ...target, write: (unit) => unit(tx) });
        // What is only told is sent with the first question.
        await tx.kysely.selectFrom('organizations').select('id').execute();
        held.resolve();
        await release.promise;
        throw new Error('taken back');
      });
      await held.promise;

      await refused(await directory(), place.at, /The PostgreSQL database is in use/);

      release.resolve();
      await expect(holding).rejects.toThrow('taken back');
    });

    test('where either database is from a newer version', async () => {
      const future = `INSERT INTO kysely_migration VALUES ('9999-future', '2030-01-01')`;
      const newer = await directory();
      const store = new DatabaseSync(sqliteFile(newer));
      store.exec(future);
      store.close();
      const place = await engine.place();
      await (await place.open()).close();
      await refused(newer, place.at, /newer Skillwright.*9999-future/);

      const client = new pg.Client({ connectionString: place.at });
      await client.connect();
      await client.query(future);
      await client.end();
      await refused(await directory(), place.at, /newer Skillwright.*9999-future/);
    });

    test('where not all rows arrive', async () => {
      const dataDir = await directory(addOrganization);
      const place = await engine.place();
      const target = await place.open();
      await sql`create function lose() returns trigger language plpgsql
        as 'begin return null; end'`.execute(target.read.kysely);
      await sql`create trigger lose before insert on organizations
        for each row execute function lose()`.execute(target.read.kysely);

      await refused(dataDir, place.at, /Of 1 rows of organizations, 0 arrived/);
    });

    test('where a table has a column that cannot be moved', async () => {
      const dataDir = await directory();
      const store = new DatabaseSync(sqliteFile(dataDir));
      store.exec('CREATE TABLE novelties (id text)');
      store.close();
      await refused(dataDir, (await engine.place()).at, /PostgreSQL has no table novelties/);

      const place = await engine.place();
      const target = await place.open();
      await sql`alter table jobs add column novelty text`.execute(target.read.kysely);
      await refused(
        await directory(),
        place.at,
        /does not know what to put in the column novelty of jobs/,
      );
    });
  });
});

/** What can be read next; and into `heard`, whether it came after `place`. */
async function read(
  database: Database,
  limit: number,
  heard: boolean[] = [],
  place = '0',
): Promise<string[]> {
  await untilReadable(database);
  return database.write(async (tx) => {
    let found: readonly OutboxEvent[] = [];
    await readEvents(tx, 'webhooks', limit, async (events) => {
      found = events;
      return events.length;
    });
    heard.push(...found.map((event) => isAfter(event, place)));
    return found.map(({ data }) => JSON.parse(data).code as string);
  });
}

async function openWaits({ read }: Database, jobId: string): Promise<boolean> {
  const waits = read.kysely.selectFrom('job_steps').select('n').where('job_id', '=', jobId);
  return (await waits.where('status', '=', 'waiting').execute()).length > 0;
}

async function addOrganization(database: Pick<Database, 'write'>): Promise<void> {
  await database.write((tx) => tx.insert('organizations', [{ id: newId(), created_at: 0 }]));
}

async function organizations(database: Database): Promise<number> {
  return (await database.read.kysely.selectFrom('organizations').select('id').execute()).length;
}
