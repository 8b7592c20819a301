/** `npm run backup -- <file>`: copies the embedded database while the platform runs. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { backUpSqlite } from '../database/backup.ts';
import { type CommandSettings, print, runCommand } from './command.ts';

await runCommand(process.env, backUp);

async function backUp({ dataDir, databaseUrl }: CommandSettings): Promise<void> {
  const [file, ...more] = process.argv.slice(2);
  if (databaseUrl !== null) {
    throw new Error(
      'DATABASE_URL is set, so the data is in PostgreSQL: use pg_dump (docs/backup.md); unset it to back up the embedded database',
    );
  }
  if (file === undefined || more.length > 0) {
    throw new Error('Give the name of the file to make: npm run backup -- <file>');
  }
  const begun = performance.now();
  const { bytes } = await backUpSqlite(dataDir, file);
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  print(`Made and checked ${file}: ${(bytes / 1e6).toFixed(1)} MB in ${seconds} s.`);
  const secrets = ['encryption-key', 'admin-secret']
    .map((name) => join(dataDir, name))
    .filter((path) => existsSync(path));
  if (secrets.length > 0) {
    print(`Not in it, to be kept somewhere else: ${secrets.join(' and ')}.`);
  }
}
