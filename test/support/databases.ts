/**
 * The databases that a contract is held to: SQLite always, PostgreSQL where it is installed.
 *
 *     describe.each(await engines())('on $name', (engine) => {
 *       test('…', async () => { const database = await engine.fresh(); … });
 *     });
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { openSqlite } from '../../src/adapters/database/sqlite.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { emptiedPostgres } from './emptied-database.ts';
import {
  dropDatabase,
  freshDatabase,
  isInstalled,
  migratedDatabase,
  migrateSqlite,
} from './shared-servers.ts';

/** An empty place for a database: a directory, or a database of the shared server. */
export interface Place {
  /** The directory or the url. */
  readonly at: string;
  /** Opens and migrates what is there; closed when the test ends, if it is not closed before. */
  open(): Promise<Database>;
}

export interface Engine {
  readonly name: 'SQLite' | 'PostgreSQL';
  /** A place of the running test's own, gone when the test ends: the schema is there, and no row. */
  place(): Promise<Place>;
  /** As `place`, for tests of the migrations themselves: nothing is there. */
  emptyPlace(): Promise<Place>;
  /** An open database of the running test's own. */
  fresh(): Promise<Database>;
  /**
   * As `place` and `fresh`, in a tenth of the time: on PostgreSQL earlier tests have used the database and its
   * connections, and their rows are gone. Not for tests that change tables or settings, or ask about plans,
   * statistics or connections. `left`: see `emptiedPostgres`.
   */
  emptiedPlace(left?: string): Promise<Place>;
  emptied(left?: string): Promise<Database>;
}

const log = createLogger('silent');

const sqlite = engine(
  'SQLite',
  (at) => openSqlite(at, log),
  async ({ migrated }) => {
    const directory = mkdtempSync(join(tmpdir(), 'skillwright-database-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    if (migrated) await migrateSqlite(directory);
    return directory;
  },
);

const openQuietly = (url: string) => openPostgres(url, log);

const postgres = engine('PostgreSQL', openQuietly, async ({ migrated }) => {
  const url = await (migrated ? migratedDatabase() : freshDatabase());
  onTestFinished(() => dropDatabase(url));
  return url;
});

/** Those that this machine can run. */
export async function engines(): Promise<Engine[]> {
  return (await isInstalled('PostgreSQL')) ? [sqlite, postgres] : [sqlite];
}

function engine(
  name: Engine['name'],
  open: (at: string) => Promise<Database>,
  makePlace: (options: { migrated: boolean }) => Promise<string>,
): Engine {
  async function placeOf(options: { migrated: boolean }): Promise<Place> {
    const at = await makePlace(options);
    return { at, open: async () => closedAtEnd(await open(at)) };
  }
  const place = () => placeOf({ migrated: true });
  const emptiedPlace: Engine['emptiedPlace'] = name === 'PostgreSQL' ? emptiedPostgres : place;
  return {
    name,
    place,
    emptyPlace: () => placeOf({ migrated: false }),
    fresh: async () => (await place()).open(),
    emptiedPlace,
    emptied: async (left) => (await emptiedPlace(left)).open(),
  };
}

/** Closes it when the test ends; closing it before, or twice, is fine. */
function closedAtEnd(database: Database): Database {
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= database.close();
    return closing;
  };
  onTestFinished(close);
  return { ...database, close };
}
