/** A database and its callers when the disk, the network or the server fails. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Kysely, PostgresDialect, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Database, Transaction } from '../../src/adapters/database/database.ts';
import { knownMigrations, loadMigrations } from '../../src/adapters/database/migrate.ts';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { engines } from '../support/databases.ts';
import { startPostgres } from '../support/postgres.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { patient, waitFor } from '../support/wait-for.ts';

const unavailable = { code: 'service_unavailable', extras: { retryAfter: expect.any(Number) } };
const [sqlite, postgres] = await engines();

const insert = (tx: Transaction, id: string) => tx.insert('organizations', [{ id, created_at: 0 }]);

async function idsIn(database: Database): Promise<string[]> {
  const query = database.read.kysely.selectFrom('organizations').select('id').orderBy('id');
  return (await query.execute()).map(({ id }) => id);
}

describe('a data directory belongs to one process', () => {
  /** A process that opens the directory, writes a row and says so, or says why it could not. */
  async function openElsewhere(directory: string): Promise<{ child: ChildProcess; said: string }> {
    const source = (name: string) => new URL(`../../src/${name}.ts`, import.meta.url).href;
    const child = spawn(
      process.execPath,
      [
        '--input-type=module',
        '--eval',
        `import { openSqlite } from '${source('adapters/database/sqlite')}';
         import { createLogger } from '${source('kernel/log')}';
         try {
           const database = await openSqlite(${JSON.stringify(directory)}, createLogger('silent'));
           await database.write((tx) =>
             tx.insert('organizations', [{ id: 'from elsewhere', created_at: 0 }]));
           console.log('written');
           setInterval(() => {}, 1_000);
         } catch (error) {
           console.log(error.message);
         }`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    onTestFinished(() => void child.kill('SIGKILL'));
    for await (const said of createInterface({ input: child.stdout })) return { child, said };
    throw new Error('The other process said nothing.');
  }

  test('a second process is refused with instructions', async () => {
    const place = await sqlite!.place();
    await place.open();

    const { said } = await openElsewhere(place.at);

    expect(said).toBe(
      `The data directory ${place.at} is in use by another Skillwright process: stop it, or set DATA_DIR to another directory.`,
    );
  });

  test('so is a second opening in the same process, and the first goes on', async () => {
    const place = await sqlite!.place();
    const first = await place.open();

    await expect(place.open()).rejects.toThrow('is in use by another Skillwright process');

    await first.write((tx) => insert(tx, 'a'));
    expect(await idsIn(first)).toEqual(['a']);
  });

  test('it is free again when that process is killed, and answered writes are there', async () => {
    const place = await sqlite!.place();
    const { child, said } = await openElsewhere(place.at);
    expect(said).toBe('written');
    await expect(place.open()).rejects.toThrow('is in use by another Skillwright process');

    child.kill('SIGKILL');
    await once(child, 'exit');

    expect(await idsIn(await place.open())).toEqual(['from elsewhere']);
  });

  test('it is free again when it was closed', async () => {
    const place = await sqlite!.place();
    await (await place.open()).close();

    await place.open();
  });
});

describe('a full disk', () => {
  const pagesMax = (pages: number) => (tx: Transaction) =>
    sql`pragma max_page_count = ${sql.lit(pages)}`.execute(tx.kysely);

  /** A database that may grow by a few pages only. */
  async function almostFull(): Promise<Database> {
    const database = await sqlite!.fresh();
    await database.write(async (tx) => {
      await insert(tx, 'before');
      const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(tx.kysely);
      await pagesMax((rows[0]?.page_count ?? 0) + 20)(tx);
    });
    return database;
  }

  const large = async (tx: Transaction) => {
    await insert(tx, 'large');
    for (let i = 0; i < 20; i++) await insert(tx, `large ${i} ${'x'.repeat(100_000)}`);
  };

  test('answers service_unavailable, rolls back the write, and still reads', async () => {
    const database = await almostFull();
    let hookRan = false;

    const write = database.write(async (tx) => {
      tx.afterCommit(() => {
        hookRan = true;
      });
      await large(tx);
    });

    await expect(write).rejects.toMatchObject(unavailable);
    expect(hookRan).toBe(false);
    expect(await idsIn(database)).toEqual(['before']);
    await database.ping();
  });

  test('fails only the write that does not fit, and not its neighbours', async () => {
    const database = await almostFull();

    const outcomes = await Promise.allSettled([
      database.write((tx) => insert(tx, 'small')),
      database.write(large),
      database.write((tx) => insert(tx, 'small too')),
    ]);

    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await idsIn(database)).toEqual(['before', 'small', 'small too']);
  });

  test('is over when there is room again', async () => {
    const database = await almostFull();
    await database.write(large).catch(() => {});

    await database.write(pagesMax(1_000_000));
    await database.write(large);

    expect(await idsIn(database)).toHaveLength(22);
  });
});

describe.skipIf(postgres === undefined)('a lost connection', () => {
  /** A database, and someone who ends its connections as an administrator would. */
  async function withAdministrator() {
    const place = await postgres!.place();
    const database = await place.open();
    const client = new pg.Client({ connectionString: place.at });
    await client.connect();
    onTestFinished(() => client.end());
    return {
      database,
      terminate: (pid: number) => client.query('select pg_terminate_backend($1)', [pid]),
      terminateAll: () =>
        client.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and pid <> pg_backend_pid()`,
        ),
      query: (text: string) => client.query(text),
    };
  }

  const pidOf = async (tx: Transaction) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx.kysely);
    return rows[0]?.pid as number;
  };

  test('between two queries of a write fails that write alone, and the next one works', async () => {
    const { database, terminate } = await withAdministrator();
    let hookRan = false;

    const write = database.write(async (tx) => {
      tx.afterCommit(() => {
        hookRan = true;
      });
      await insert(tx, 'a');
      await terminate(await pidOf(tx));
      // Until the end has reached this side of the connection.
      await waitFor(
        () =>
          pidOf(tx).then(
            () => false,
            () => true,
          ),
        {
          describe: 'the connection is lost',
        },
      );
      await insert(tx, 'b');
    });

    await expect(write).rejects.toMatchObject(unavailable);
    expect(hookRan).toBe(false);
    await database.write((tx) => insert(tx, 'c'));
    expect(await idsIn(database)).toEqual(['c']);
  });

  test('between two queries of a write fails that write, and no later one', async () => {
    const { database, terminate, query } = await withAdministrator();
    const gate = Promise.withResolvers<void>();
    let pid = 0;

    const write = database.write(async (tx) => {
      pid = await pidOf(tx);
      await gate.promise;
      await insert(tx, 'a');
    });
    await waitFor(() => pid > 0, { describe: 'the write is under way' });
    await terminate(pid);
    await waitFor(
      async () => {
        const { rows } = await query(`select from pg_stat_activity where pid = ${pid}`);
        return rows.length === 0;
      },
      { describe: 'the connection has ended' },
    );
    await new Promise((resolve) => setImmediate(resolve));
    gate.resolve();

    await expect(write).rejects.toMatchObject(unavailable);
    await database.write((tx) => insert(tx, 'b'));
    expect(await idsIn(database)).toEqual(['b']);
  });

  test('in the middle of a query fails that query', async () => {
    const { database, terminate, query } = await withAdministrator();
    let pid = 0;

    const write = database.write(async (tx) => {
      pid = await pidOf(tx);
      await sql`select pg_sleep(60)`.execute(tx.kysely);
    });
    write.catch(() => {});
    await waitFor(
      async () => {
        const { rows } = await query(
          `select from pg_stat_activity where pid = ${pid} and query like '%pg_sleep(60)%'`,
        );
        return rows.length > 0;
      },
      { describe: 'the query runs' },
    );
    await terminate(pid);

    await expect(write).rejects.toMatchObject(unavailable);
    await database.ping();
  });

  test('of the whole idle pool is repaired by the next query', async () => {
    const { database, terminateAll } = await withAdministrator();
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => database.write((tx) => insert(tx, `org-${i}`))),
    );

    await terminateAll();

    await waitFor(
      async () => {
        await database.ping();
        await database.write(async () => {});
        return true;
      },
      { describe: 'the database is used again' },
    );
    expect(await idsIn(database)).toHaveLength(20);
  });

  test('under load costs no answered write and repeats none', async () => {
    const { database, terminateAll } = await withAdministrator();
    const answered: string[] = [];
    const refused: unknown[] = [];

    const writes = Array.from({ length: 300 }, async (_, i) => {
      const id = `org-${i}`;
      try {
        await database.write((tx) => insert(tx, id));
        answered.push(id);
      } catch (error) {
        refused.push(error);
      }
    });
    for (let i = 0; i < 3; i++) {
      const before = answered.length;
      await waitFor(() => answered.length + refused.length > before || answered.length === 300, {
        describe: 'the load goes on',
        everyMs: 1,
      });
      await terminateAll();
    }
    await Promise.all(writes);

    for (const error of refused) expect(error).toMatchObject(unavailable);
    expect(await idsIn(database)).toEqual(expect.arrayContaining(answered));
    await database.write((tx) => insert(tx, 'afterwards'));
  });

  test('to a database that accepts none answers service_unavailable until it does', async () => {
    const { database, terminateAll, query } = await withAdministrator();
    const mayConnect = (may: boolean) =>
      query(`update pg_database set datallowconn = ${may} where datname = current_database()`);
    await mayConnect(false);
    await terminateAll();

    // The first may still find a connection that has ended.
    for (let i = 0; i < 3; i++) {
      await expect(database.write((tx) => insert(tx, 'a'))).rejects.toMatchObject(unavailable);
    }

    await mayConnect(true);
    await database.write((tx) => insert(tx, 'b'));
    expect(await idsIn(database)).toEqual(['b']);
  });

  test('to a server that stops answers service_unavailable until it is back', async () => {
    const server = await startPostgres();
    onTestFinished(() => server.close());
    const database = await openPostgres(await server.createDatabase(), createLogger('silent'));
    onTestFinished(() => database.close());
    await database.write((tx) => insert(tx, 'a'));

    await server.stop('immediate');

    await expect(database.write((tx) => insert(tx, 'b'))).rejects.toMatchObject(unavailable);
    await expect(idsIn(database)).rejects.toMatchObject(unavailable);
    await expect(database.ping()).rejects.toMatchObject(unavailable);
    await server.start();
    await waitFor(() => database.write((tx) => insert(tx, 'c')).then(() => true), {
      describe: 'writes work again',
    });
    expect(await idsIn(database)).toEqual(['a', 'c']);
  });

  test('that the network has dropped is given up after the first query without an answer', async () => {
    const place = await postgres!.place();
    const { port } = new URL(place.at);
    const proxy = await startTcpProxy(() => Number(port));
    onTestFinished(() => proxy.close());
    const through = place.at.replace(`:${port}/`, `:${proxy.port}/`);
    const database = await openPostgres(through, createLogger('silent'));
    onTestFinished(() => database.close());
    // Two connections, one for each of the two ways in which they are used below.
    await Promise.all([database.write((tx) => insert(tx, 'a')), idsIn(database)]);
    expect(proxy.connections()).toBe(2);
    proxy.swallow();

    const refused = await Promise.allSettled([
      database.write((tx) => insert(tx, 'b')),
      idsIn(database),
    ]);
    await proxy.heal();

    expect(refused).toMatchObject(Array(2).fill({ status: 'rejected', reason: unavailable }));
    const began = performance.now();
    await Promise.all([database.write((tx) => insert(tx, 'c')), idsIn(database)]);
    // A query without an answer is given up after ten.
    expect(performance.now() - began).toBeLessThan(patient(4_000));
    expect(await idsIn(database)).toEqual(['a', 'c']);
  });

  test('differs from a read-only server, which still answers reads', async () => {
    const place = await postgres!.place();
    await (await place.open()).close();
    const options = encodeURIComponent('-c default_transaction_read_only=on');
    const database = await openPostgres(`${place.at}?options=${options}`, createLogger('silent'));
    onTestFinished(() => database.close());

    await expect(database.write((tx) => insert(tx, 'a'))).rejects.toMatchObject(unavailable);

    expect(await idsIn(database)).toEqual([]);
  });

  test('to a server that took no writes is not used again once another one does', async () => {
    const place = await postgres!.place();
    const database = await openPostgres(place.at, createLogger('silent'));
    onTestFinished(() => database.close());
    const name = new URL(place.at).pathname.slice(1);
    const operator = new pg.Client({ connectionString: place.at });
    await operator.connect();
    onTestFinished(() => operator.end());
    // What a session takes from its database it keeps, as one with a demoted server stays with that.
    await operator.query(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`);
    await operator.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    await waitFor(() => database.connections().idle === 0, { describe: 'the pool has noticed' });
    await expect(database.write((tx) => insert(tx, 'a'))).rejects.toMatchObject(unavailable);
    await operator.query('SET default_transaction_read_only = off');
    await operator.query(`ALTER DATABASE "${name}" RESET default_transaction_read_only`);

    await database.write((tx) => insert(tx, 'b'));

    expect(await idsIn(database)).toEqual(['b']);
  });
});

describe.skipIf(postgres === undefined)('a database that several processes share', () => {
  test('completes two writes that deadlock each other', async () => {
    const database = await postgres!.fresh();
    await database.write(async (tx) => {
      await insert(tx, 'a');
      await insert(tx, 'b');
    });
    const bump = (tx: Transaction, id: string) =>
      tx.kysely
        .updateTable('organizations')
        .set((eb) => ({ created_at: eb('created_at', '+', 1) }))
        .where('id', '=', id)
        .execute();
    const bothBegun = Promise.withResolvers<void>();
    let begun = 0;
    let hooksRun = 0;

    const write = (first: string, second: string) =>
      database.write(async (tx) => {
        tx.afterCommit(() => void hooksRun++);
        await bump(tx, first);
        if (++begun === 2) bothBegun.resolve();
        await bothBegun.promise;
        await bump(tx, second);
      });
    await Promise.all([write('a', 'b'), write('b', 'a')]);

    const rows = await database.read.kysely.selectFrom('organizations').selectAll().execute();
    expect(rows.map(({ created_at }) => created_at)).toEqual([2, 2]);
    // On a busy machine the one that was given up may be sooner at its row again than the other.
    expect(begun).toBeGreaterThanOrEqual(3);
    expect(hooksRun).toBe(2);
  });

  test('is migrated once when three of them start at the same moment', async () => {
    const place = await postgres!.emptyPlace();

    const databases = await Promise.all([place.open(), place.open(), place.open()]);

    await Promise.all(databases.map((database, i) => database.write((tx) => insert(tx, `${i}`))));
    for (const database of databases) expect(await idsIn(database)).toEqual(['0', '1', '2']);
  });

  test('of an earlier version is upgraded with a line in the log before and after, a current one with none', async () => {
    const place = await postgres!.emptyPlace();
    const db = new Kysely<unknown>({
      dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: place.at, max: 1 }) }),
    });
    const last = knownMigrations.at(-1) as string;
    const all = await loadMigrations('postgres');
    const getMigrations = async () => all;
    const earlier = knownMigrations.at(-2) as string;
    await new Migrator({ db, provider: { getMigrations } }).migrateTo(earlier);
    await db.destroy();
    const lines: string[] = [];
    const log = createLogger('info', { write: (line) => void lines.push(line) });

    await (await openPostgres(place.at, log)).close();

    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { msg: 'upgrading the schema of the database', migrations: 1, first: last, last },
      { msg: 'upgraded the schema of the database', last, duration_ms: expect.any(Number) },
    ]);
    await (await openPostgres(place.at, log)).close();
    expect(lines).toHaveLength(2);
  });

  test('that cannot be reached stops the start with a message that does not have the password', async () => {
    const opening = openPostgres('postgres://u:hunter2@127.0.0.1:1/x', createLogger('silent'));

    const error = await opening.catch((cause) => cause);

    expect(error).toMatchObject(unavailable);
    expect(error.message).not.toContain('hunter2');
  });
});
