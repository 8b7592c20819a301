/** Reads a file of an author. The read is bounded and never waits, whatever the path leads to by now. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { SkillLoadError } from './load-error.ts';

/** Bytes of a SKILL.md. Here, because its reader brings a parser of YAML along. */
export const skillMdBytesMax = 1_048_576;
/** The open of a FIFO without a writer would block the process. */
const openFlags = constants.O_RDONLY | constants.O_NONBLOCK;

/** The bytes of a regular file. Throws SkillLoadError for anything else, and for a file of more than `bytesMax`. */
export function readFile(file: string, bytesMax: number): Buffer {
  let fd: number | undefined;
  try {
    fd = openSync(file, openFlags);
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new SkillLoadError(file, 'must be a regular file');
    if (stats.size > bytesMax) {
      throw new SkillLoadError(file, `must have at most ${bytesMax} bytes`);
    }
    return readFileSync(fd);
  } catch (error) {
    if (error instanceof SkillLoadError) throw error;
    throw new SkillLoadError(file, `cannot be read: ${(error as Error).message}`);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
