/**
 * PostgreSQL databases that tests use one after the other: making one, connecting to it and planning its
 * statements anew takes longer than most tests. A test finds no row, and every sequence at its beginning; what it
 * leaves running can no longer write when the next test begins.
 */
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { type Database, unavailable } from '../../src/adapters/database/database.ts';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { dropDatabase, migratedDatabase } from './shared-servers.ts';

interface Kept {
  readonly url: string;
  readonly database: Database;
  /** Deletes all rows. */
  readonly client: pg.Client;
  readonly emptying: string;
  uses: number;
}

/** Deleted rows take room until they are vacuumed, and nothing vacuums here. */
const usesMax = 50;
const deletedMax = 1_000;
/** What still holds a lock when its test is over belongs to that test. */
const lockTimeoutMs = 1_000;

/** By what their users leave in them beside rows. */
const spares = new Map<string, Kept[]>();
const log = createLogger('silent');

/**
 * A database without rows, for the running test; each `open` gives it connections of its own. Tests that leave
 * more than rows behind, such as a trigger, name it: they share databases with one another alone.
 */
export async function emptiedPostgres(
  left = 'nothing',
): Promise<{ at: string; open(): Promise<Database> }> {
  const spare = spares.get(left) ?? [];
  spares.set(left, spare);
  const kept = spare.pop() ?? (await make());
  kept.uses += 1;
  const first = viewOf(kept.database);
  const further: Database[] = [];
  let isTaken = false;
  onTestFinished(async ({ task }) => {
    await Promise.all([first.end(), ...further.map((database) => database.close())]);
    const isFit = !first.isClosed() && task.result?.state !== 'fail' && kept.uses < usesMax;
    if (isFit && (await empty(kept))) return void spare.push(kept);
    await first.database.close();
    await remove(kept);
  });
  return {
    at: kept.url,
    async open() {
      if (!isTaken) {
        isTaken = true;
        return first.database;
      }
      const opened = closedOnce(await openPostgres(kept.url, log));
      further.push(opened);
      return opened;
    },
  };
}

/** The database as one test has it. */
function viewOf(kept: Database) {
  const writes = new Set<Promise<unknown>>();
  let isOver = false;
  let isClosed = false;
  const database = closedOnce({
    ...kept,
    async write(unit) {
      if (isOver) throw unavailable();
      const writing = kept.write(unit);
      writes.add(writing);
      return await writing.finally(() => writes.delete(writing));
    },
    close() {
      isClosed = true;
      return kept.close();
    },
  });
  return {
    database,
    isClosed: () => isClosed,
    /** The test is over. */
    async end() {
      isOver = true;
      await Promise.allSettled(writes);
    },
  };
}

function closedOnce(database: Database): Database {
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= database.close();
    return closing;
  };
  return { ...database, close };
}

async function make(): Promise<Kept> {
  const url = await migratedDatabase();
  const database = await openPostgres(url, log);
  const client = new pg.Client({ connectionString: url });
  // The server is stopped before this process ends.
  client.on('error', () => {});
  await client.connect();
  const { rows } = await client.query<{ emptying: string }>(`
    select string_agg(format('delete from %I', tablename), ';') as emptying from pg_tables
      where schemaname = 'public' and tablename not like 'kysely%'
    union all
    select string_agg(format('select setval(%L, 1, false)', sequencename), ';') from pg_sequences
      where schemaname = 'public'`);
  await client.query(
    `set session_replication_role = replica; set lock_timeout = ${lockTimeoutMs}; set jit = off`,
  );
  return { url, database, client, emptying: rows.map((row) => row.emptying).join(';'), uses: 0 };
}

/** False when it is not fit for another test. */
async function empty({ client, emptying }: Kept): Promise<boolean> {
  try {
    // Many statements have many results, which the types do not know.
    const results = (await client.query(emptying)) as unknown as pg.QueryResult[];
    const deleted = results.filter(({ command }) => command === 'DELETE');
    return deleted.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0) < deletedMax;
  } catch {
    return false;
  }
}

async function remove({ url, client }: Kept): Promise<void> {
  await client.end().catch(() => {});
  await dropDatabase(url);
}
