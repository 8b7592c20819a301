/** What a measurement of the program's own modules has on each database, one after the other. */
import { rmSync } from 'node:fs';
import type { Database } from '../src/adapters/database/database.ts';
import { openPostgres } from '../src/adapters/database/postgres.ts';
import { openSqlite } from '../src/adapters/database/sqlite.ts';
import { createLogger } from '../src/kernel/log.ts';
import { findPostgres, startPostgres } from '../test/support/postgres.ts';
import type { Figure } from './figures.ts';
import { temporaryDirectory } from './server.ts';

/** The figures of an empty SQLite, and of an empty PostgreSQL of its own where there is one. */
export async function onBothDatabases(
  measureOn: (database: Database, name: string) => Promise<Figure[]>,
): Promise<Figure[]> {
  const figures: Figure[] = [];
  const dataDir = temporaryDirectory();
  try {
    const database = await openSqlite(dataDir, createLogger('silent'));
    figures.push(...(await measureOn(database, 'SQLite')));
    await database.close();
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
  if (findPostgres() === undefined) return figures;
  const server = await startPostgres();
  try {
    const database = await openPostgres(await server.createDatabase(), createLogger('silent'));
    figures.push(...(await measureOn(database, 'PostgreSQL')));
    await database.close();
  } finally {
    await server.close();
  }
  return figures;
}
