/** `skillwright backup <file>`: copies the embedded database while the platform runs. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { blobsIn, copyBlobs } from '../../adapters/blobs/directory-blobs.ts';
import { backUpSqlite, blobsOfCopy } from '../../adapters/database/backup.ts';
import { CliError, exitCodes } from './exit-codes.ts';
import { type Io, writeJson } from './io.ts';
import { readDataSettings } from './settings.ts';

export async function backUp(
  io: Pick<Io, 'env' | 'stdout'>,
  file: string | undefined,
  { json }: { json?: boolean },
): Promise<void> {
  const { env, stdout } = io;
  const { dataDir, databaseUrl, s3 } = readDataSettings(env);
  if (databaseUrl !== null) {
    throw new Error(
      'DATABASE_URL is set, so the data is in PostgreSQL: use pg_dump (docs/backup.md); unset it to back up the embedded database',
    );
  }
  if (file === undefined) {
    const message = 'Give the name of the file to make: skillwright backup <file>';
    throw new CliError(message, exitCodes.usage);
  }
  const begun = performance.now();
  const { bytes } = await backUpSqlite(dataDir, file);
  const files = s3 === null ? await copyFiles(dataDir, file) : null;
  const seconds = (performance.now() - begun) / 1000;
  const secrets = ['encryption-key', 'admin-secret']
    .map((name) => join(dataDir, name))
    .filter((path) => existsSync(path));
  if (json) return writeJson(io, { file, bytes, files, seconds, not_in_it: secrets });
  const made = `${(bytes / 1e6).toFixed(1)} MB in ${seconds.toFixed(1)} s`;
  stdout.write(`Made and checked ${file}: ${made}.\n`);
  if (files !== null && files.copied > 0) {
    stdout.write(
      `Copied the bytes of ${files.copied} files into ${files.directory}: keep it beside the copy.\n`,
    );
  }
  if (s3 !== null) stdout.write('Not in it: files, which are in FILES_S3_URL.\n');
  if (secrets.length > 0) {
    stdout.write(`Not in it, to be kept somewhere else: ${secrets.join(' and ')}.\n`);
  }
}

/** Copies the bytes that the copy of the database names. A file that was deleted meanwhile is left out, as it is gone. */
async function copyFiles(dataDir: string, copy: string) {
  const directory = `${copy}.files`;
  const copied = await copyBlobs(blobsIn(dataDir), blobsOfCopy(copy), directory);
  return { directory, copied };
}
