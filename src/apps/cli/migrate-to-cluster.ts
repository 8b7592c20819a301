/** `skillwright migrate-to-cluster`: moves an embedded installation's data into PostgreSQL. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { blobsIn } from '../../adapters/blobs/directory-blobs.ts';
import { moveMarkerFile } from '../../adapters/database/move-marker.ts';
import { systemClock } from '../../kernel/clock.ts';
import { createLogger } from '../../kernel/log.ts';
import { moveFiles } from '../move/files.ts';
import { earlierMove, moveToPostgres } from '../move/move.ts';
import { type Io, writeJson } from './io.ts';
import { readDataSettings } from './settings.ts';

export async function migrateToCluster(io: Io, { json }: { json?: boolean }): Promise<void> {
  const print = (text: string) => io.stdout.write(`${text}\n`);
  const { dataDir, databaseUrl, s3 } = readDataSettings(io.env);
  if (databaseUrl === null) {
    throw new Error('DATABASE_URL is not set: it says which PostgreSQL to move the data into');
  }
  const begun = performance.now();
  const log = createLogger('error');
  // Before the bytes of files are sent for nothing.
  earlierMove(dataDir, databaseUrl);
  const files = await moveFiles(dataDir, s3, log);
  const tables: { name: string; rows: number }[] = [];
  const { into, wasThere } = await moveToPostgres({
    dataDir,
    url: databaseUrl,
    clock: systemClock,
    log,
    onTable(name, rows) {
      tables.push({ name, rows });
      if (!json) print(`${name.padEnd(26)}${rows.toLocaleString('en').padStart(14)}`);
    },
  });
  const total = tables.reduce((sum, { rows }) => sum + rows, 0);
  const seconds = (performance.now() - begun) / 1000;
  if (json) {
    writeJson(io, {
      ...{ from: dataDir, into, was_there: wasThere, rows: total, tables, seconds, files },
      // The files whose contents the new processes need as settings.
      admin_secret_file: secretFile(dataDir, 'admin-secret'),
      encryption_key_file: secretFile(dataDir, 'encryption-key'),
    });
    return;
  }
  print(
    wasThere
      ? `\nAn earlier try had moved everything from ${dataDir} into ${into}: nothing was left to do.`
      : `\nMoved ${total.toLocaleString('en')} rows of ${tables.length} tables from ${dataDir} into ${into} in ${seconds.toFixed(1)} s.`,
  );
  if (files.moved > 0) print(`Moved the bytes of ${files.moved} files into FILES_S3_URL.`);
  if (files.left > 0) print(leftFiles(dataDir, files.left));
  if (files.missing > 0) print(missingFiles(dataDir, files.missing));
  print(`
From now on start with DATABASE_URL, and with

  ADMIN_SECRET    ${whereIs(dataDir, 'admin-secret')}
  ENCRYPTION_KEY  ${whereIs(dataDir, 'encryption-key')}

What is in ${dataDir} was left as it is; the file ${moveMarkerFile(dataDir)} keeps the
embedded platform from starting on it.`);
}

const leftFiles = (dataDir: string, left: number) => `
The bytes of ${left} files were left in ${blobsIn(dataDir)}, because FILES_S3_URL is not set. One process on this directory
goes on using them; for a cluster, copy that folder into a bucket, under the same names, and set FILES_S3_URL.`;

const missingFiles = (dataDir: string, missing: number) =>
  `The bytes of ${missing} files are not in ${blobsIn(dataDir)}: they are in FILES_S3_URL already, or lost.`;

/** Never the secret itself: what is printed is kept in more places than one thinks. */
function whereIs(dataDir: string, name: string): string {
  const file = secretFile(dataDir, name);
  return file === null ? 'set as it was until now' : `set to what is in ${file}`;
}

/** Null where the secret was given as a setting. */
function secretFile(dataDir: string, name: string): string | null {
  const file = join(dataDir, name);
  return existsSync(file) ? file : null;
}
