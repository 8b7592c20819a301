import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { knownMigrations } from '../../src/adapters/database/migrate.ts';
import { sqliteFile } from '../../src/adapters/database/sqlite.ts';
import { startPostgres } from './postgres.ts';
import { startRedis } from './redis.ts';
import { freshDatabase, isInstalled, migratedDatabase, migrateSqlite } from './shared-servers.ts';
import { waitFor } from './wait-for.ts';

const postgres = await isInstalled('PostgreSQL');
const redis = await isInstalled('Redis');

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query({ text, rowMode: 'array' })).rows.flat();
  } finally {
    await client.end();
  }
}

describe.skipIf(!postgres)('PostgreSQL for tests', () => {
  test('each caller gets an empty database of its own', async () => {
    const [one, other] = await Promise.all([freshDatabase(), freshDatabase()]);

    await query(one, 'CREATE TABLE only_here (a int)');

    const tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'";
    expect(await query(one, tables)).toEqual(['only_here']);
    expect(await query(other, tables)).toEqual([]);
  });

  test('is migrated for the first that ask, beside SQLite', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'skillwright-migrated-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));

    const [url] = await Promise.all([migratedDatabase(), migrateSqlite(directory)]);

    const name = 'SELECT name FROM kysely_migration ORDER BY name';
    const sqlite = new DatabaseSync(sqliteFile(directory));
    const inSqlite = sqlite.prepare(name).all();
    sqlite.close();
    expect(inSqlite.map((row) => row['name'])).toEqual(knownMigrations);
    expect(await query(url, name)).toEqual(knownMigrations);
  });

  test('what was committed is there after a kill and after an immediate stop', async () => {
    const server = await startPostgres();
    try {
      const url = await server.createDatabase();
      await query(url, 'CREATE TABLE kept AS SELECT 7 AS a');

      await server.kill();
      await server.start();
      await server.restart('immediate');

      expect(await query(url, 'SELECT a FROM kept')).toEqual([7]);
    } finally {
      await server.close();
    }
  });
});

describe.skipIf(!redis)('Redis for tests', () => {
  test('can be flushed, frozen and killed, and comes back empty', async () => {
    const server = await startRedis();
    try {
      expect(await server.command('SET a 1')).toBe('+OK');
      expect(await server.command('EXISTS a')).toBe(':1');

      await server.kill();
      await server.start();

      expect(await server.command('EXISTS a')).toBe(':0');
      server.freeze();
    } finally {
      await server.close();
    }
  });
});

test.skipIf(!postgres || !redis)('servers end with a test process that is killed', async () => {
  const support = new URL('.', import.meta.url).href;
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `import { startPostgres } from '${support}postgres.ts';
       import { startRedis } from '${support}redis.ts';
       const postgres = await startPostgres();
       const redis = await startRedis();
       console.log(postgres.socketDirectory);
       console.log(postgres.port + ' ' + redis.port);`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const directory = String((await lines.next()).value);
  const ports = String((await lines.next()).value).split(' ');
  expect(existsSync(directory)).toBe(true);

  child.kill('SIGKILL');

  await waitFor(() => !existsSync(directory), { describe: 'the directory is removed' });
  for (const port of ports) {
    await waitFor(() => refusesConnections(Number(port)), { describe: `port ${port} is closed` });
  }
});

async function refusesConnections(port: number): Promise<boolean> {
  const client = new pg.Client({ host: '127.0.0.1', port, connectionTimeoutMillis: 500 });
  try {
    await client.connect();
    await client.end();
    return false;
  } catch (error) {
    return (error as { code?: string }).code === 'ECONNREFUSED';
  }
}
