/** Moves the bytes of files into the storage that the processes of a cluster share, before their rows are moved. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { blobsIn } from '../../adapters/blobs/directory-blobs.ts';
import { S3Blobs, type S3Settings } from '../../adapters/blobs/s3-blobs.ts';
import { openSqlite, sqliteFile } from '../../adapters/database/sqlite.ts';
import type { Logger } from '../../kernel/log.ts';

const pageMax = 500;

export type MovedFiles = Record<'moved' | 'left' | 'missing', number>;

/**
 * How many files' bytes were moved, were left where no storage is set, and are not in the data directory: lost, or in the
 * storage already. A repetition moves them again, to no harm.
 */
export async function moveFiles(
  dataDir: string,
  s3: S3Settings | null,
  log: Logger,
): Promise<MovedFiles> {
  const counts = { moved: 0, left: 0, missing: 0 };
  if (!existsSync(sqliteFile(dataDir))) return counts;
  const source = await openSqlite(dataDir, log, { evenIfMoved: true });
  const blobs = s3 === null ? null : new S3Blobs(s3);
  try {
    for (let after = ''; ; ) {
      const page = await source.read.kysely
        .selectFrom('file_blobs')
        .select(['blob_key', 'sha256', 'bytes'])
        .where('blob_key', '>', after)
        .orderBy('blob_key')
        .limit(pageMax)
        .execute();
      for (const { blob_key: key, sha256, bytes } of page) {
        const path = join(blobsIn(dataDir), key);
        const isThere = existsSync(path);
        if (isThere) await blobs?.put(key, { path, sha256, bytes });
        counts[isThere ? (blobs === null ? 'left' : 'moved') : 'missing'] += 1;
      }
      const last = page.at(-1);
      if (last === undefined) return counts;
      after = last.blob_key;
    }
  } finally {
    await blobs?.close();
    await source.close();
  }
}
