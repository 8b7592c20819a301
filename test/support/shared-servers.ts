/**
 * What a test file may ask of the servers that all files share. Files that kill or restart a
 * server start one of their own (`postgres.ts`, `redis.ts`).
 *
 *     const here = await isInstalled('PostgreSQL');
 *     describe.skipIf(!here)('…', () => { const url = await freshDatabase(); … });
 */
import { constants, copyFileSync, mkdirSync } from 'node:fs';
import { request } from 'node:http';
import { inject } from 'vitest';
import { sqliteFile } from '../../src/adapters/database/sqlite.ts';
import { nameOf } from './postgres.ts';

/**
 * Whether this machine has the server's program. Where it has not, the run says so once and the
 * caller skips its tests; with `CI=true` this throws instead, since there it must not be missing.
 */
export async function isInstalled(
  name: 'PostgreSQL' | 'Redis' | 'Chromium' | 'Prometheus',
): Promise<boolean> {
  const here = (await ask(`/${name}`)) === true;
  if (!here && process.env['CI'] === 'true') {
    throw new Error(`${name} is not installed, and with CI=true nothing is skipped.`);
  }
  return here;
}

/** The URL of an empty PostgreSQL database of the caller's own. */
export async function freshDatabase(): Promise<string> {
  return String(await ask('/database/empty'));
}

/** As `freshDatabase`, with the schema of this program already in it. */
export async function migratedDatabase(): Promise<string> {
  return String(await ask('/database/migrated'));
}

/** Removes a database that one of the two above has given, so that it takes no room any more. */
export async function dropDatabase(url: string): Promise<void> {
  await ask(`/database/drop/${nameOf(url)}`);
}

let template: Promise<string> | undefined;

/** Puts an SQLite database with the schema of this program into a directory that has none. */
export async function migrateSqlite(dataDir: string): Promise<void> {
  template ??= ask('/sqlite/migrated').then(String);
  mkdirSync(dataDir, { recursive: true });
  copyFileSync(await template, sqliteFile(dataDir), constants.COPYFILE_FICLONE);
}

/** The URL of an empty Redis database of the caller's own. */
export async function freshRedis(): Promise<string> {
  return String(await ask('/redis'));
}

function ask(path: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    request({ socketPath: inject('serverBroker'), path }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => {
        if (response.statusCode === 200) resolve(JSON.parse(body));
        else reject(new Error(`The shared server did not start: ${body}`));
      });
    })
      .on('error', reject)
      .end();
  });
}
