/** Keeps the bytes of files below the data directory: `files/<organization>/<name>`. */
import { constants, createReadStream, existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { copyFile, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { flushToDisk, makeDirectory } from '../../kernel/directory.ts';
import type { BlobSource, Blobs, BytePart } from './blobs.ts';

/** Where the bytes of a data directory's files are. */
export const blobsIn = (dataDir: string) => join(dataDir, 'files');

export class DirectoryBlobs implements Blobs {
  readonly spoolDirectory: string;
  readonly #directory: string;

  /** With `isAlone` no other process uses the directory: files that an earlier one has left behind are removed. */
  constructor(dataDir: string, isAlone: boolean) {
    this.#directory = blobsIn(dataDir);
    // No organization has this name.
    this.spoolDirectory = join(this.#directory, '.arriving');
    if (isAlone) emptySpool(this.spoolDirectory);
  }

  async put(key: string, { path }: BlobSource): Promise<void> {
    const file = join(this.#directory, key);
    makeDirectory(dirname(file));
    await flushToDisk(path);
    await rename(path, file);
    await flushToDisk(dirname(file));
  }

  async has(key: string, bytes: number): Promise<boolean> {
    return (await unlessGone(stat(join(this.#directory, key))))?.size === bytes;
  }

  async read(key: string, part?: BytePart): Promise<Readable | null> {
    const file = await unlessGone(open(join(this.#directory, key), 'r'));
    return file && createReadStream('', { ...part, fd: file });
  }

  async remove(key: string): Promise<void> {
    await rm(join(this.#directory, key), { force: true });
  }

  async close(): Promise<void> {}
}

/** Null where the file is gone. */
async function unlessGone<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function emptySpool(directory: string): void {
  try {
    for (const name of readdirSync(directory)) rmSync(join(directory, name), { force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/**
 * Copies bytes into a new directory, which is there only once it is whole and on disk; how many. Leaves out those that are
 * gone, and makes no directory where there are none.
 */
export async function copyBlobs(
  from: string,
  keys: readonly string[],
  directory: string,
): Promise<number> {
  if (existsSync(directory)) throw new Error(`${directory} is there already: remove it first`);
  const partial = `${directory}.partial`;
  rmSync(partial, { recursive: true, force: true });
  let copied = 0;
  try {
    for (const key of keys) {
      const file = join(partial, key);
      makeDirectory(dirname(file));
      const mode = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE;
      const copy = copyFile(join(from, key), file, mode).then(() => true);
      if ((await unlessGone(copy)) === null) continue;
      await flushToDisk(file);
      copied += 1;
    }
    if (copied > 0) renameSync(partial, directory);
    return copied;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}
