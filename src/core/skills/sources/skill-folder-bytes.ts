/**
 * The files of a SKILL.md skill as they are, for clients that follow it themselves. The same files that a model may
 * read (skill-folder.ts): regular ones inside the folder that are not hidden. All or nothing, and bounded.
 */
import { constants } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { listSkillFiles } from './skill-folder-files.ts';

/** Bytes of all files of a skill. */
const folderBytesMax = 4 * 1024 * 1024;
/** A FIFO without a writer must not block. */
const openFlags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** The files by their path; undefined for a folder that is too large or cannot be read. */
export async function readSkillFolder(
  folder: string,
): Promise<Readonly<Record<string, Uint8Array>> | undefined> {
  const { files, more, isComplete } = await listSkillFiles(folder);
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  if (more > 0 || !isComplete || bytes > folderBytesMax) return undefined;
  try {
    const read = files.map(async ({ path, size }) => [path, await readBytes(folder, path, size)]);
    return Object.fromEntries(await Promise.all(read)) as Record<string, Uint8Array>;
  } catch {
    return undefined;
  }
}

/** At most `size` bytes: a file that grows meanwhile is cut, and its digest is that of what was read. */
async function readBytes(folder: string, path: string, size: number): Promise<Uint8Array> {
  const handle = await open(await realpath(join(folder, path)), openFlags);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new Error(`${path} is no regular file`);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(size), 0, size, 0);
    return new Uint8Array(buffer.subarray(0, bytesRead));
  } finally {
    await handle.close();
  }
}
