/** `skillwright migrate-to-cluster`: moves an embedded installation's data into PostgreSQL. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { moveMarkerFile } from '../database/move-marker.ts';
import { systemClock } from '../kernel/clock.ts';
import { createLogger } from '../kernel/log.ts';
import { moveToPostgres } from '../move/move.ts';
import type { Io } from './io.ts';
import { readDataSettings } from './settings.ts';

export async function migrateToCluster({ env, stdout }: Io): Promise<void> {
  const print = (text: string) => stdout.write(`${text}\n`);
  const { dataDir, databaseUrl } = readDataSettings(env);
  if (databaseUrl === null) {
    throw new Error('DATABASE_URL is not set: it says which PostgreSQL to move the data into');
  }
  const begun = performance.now();
  let tables = 0;
  let total = 0;
  const { into, wasThere } = await moveToPostgres({
    dataDir,
    url: databaseUrl,
    clock: systemClock,
    log: createLogger('error'),
    onTable(name, rows) {
      tables += 1;
      total += rows;
      print(`${name.padEnd(26)}${rows.toLocaleString('en').padStart(14)}`);
    },
  });
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  print(
    wasThere
      ? `\nAn earlier try had moved everything from ${dataDir} into ${into}: nothing was left to do.`
      : `\nMoved ${total.toLocaleString('en')} rows of ${tables} tables from ${dataDir} into ${into} in ${seconds} s.`,
  );
  print(`
From now on start with DATABASE_URL, and with

  ADMIN_SECRET    ${whereIs(dataDir, 'admin-secret')}
  ENCRYPTION_KEY  ${whereIs(dataDir, 'encryption-key')}

What is in ${dataDir} was left as it is; the file ${moveMarkerFile(dataDir)} keeps the
embedded platform from starting on it.`);
}

/** Never the secret itself: what is printed is kept in more places than one thinks. */
function whereIs(dataDir: string, name: string): string {
  const file = join(dataDir, name);
  return existsSync(file) ? `set to what is in ${file}` : 'set as it was until now';
}
