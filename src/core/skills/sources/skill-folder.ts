/**
 * Reads the files of a SKILL.md skill for a model. Promises that no path leads out of the folder or to a
 * hidden file, by `..`, absolute paths or symbolic links; that only regular files are opened, so no read
 * can block; and that every text is bounded. A file that cannot be read gives an error sentence. Changes
 * nothing and executes nothing.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, normalize } from 'node:path';
import { isCleanText } from '../../../kernel/text.ts';
import { findSkillPaths, isListed, isVisible, isWithin } from './skill-folder-files.ts';
import { describeBytes } from './skill-folder-kinds.ts';
import { likest } from './skill-folder-names.ts';

/** The model gets `text` or `error`. */
export type SkillFileRead = { readonly text: string } | { readonly error: string };

const pathBytesMax = 1_024;
/** Most bytes of one call; with the note on the rest, a model gets all of it. */
const readBytesMax = 48_000;
/** The longest UTF-8 character, so that every read makes progress. */
const readBytesMin = 4;
/** Most paths that an error proposes. */
const proposalsMax = 10;
/** A FIFO without a writer must not block, and a link created since the check is not followed. */
const openFlags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/**
 * Reads a file of `folder` for a model. `path`, `offset` and `limit` (bytes; 0 and 48,000 when left out)
 * come from the model, so they may be any value. A cut text says how to read on. For a binary file the
 * result is its kind and size.
 */
export async function readSkillFile(
  folder: string,
  path: unknown,
  range: { offset?: unknown; limit?: unknown } = {},
): Promise<SkillFileRead> {
  const asked = pathOf(path);
  if ('error' in asked) return asked;
  const offset = wholeNumber('offset', range.offset ?? 0);
  const limit = wholeNumber('limit', range.limit ?? readBytesMax);
  if (typeof offset === 'object') return offset;
  if (typeof limit === 'object') return limit;
  try {
    const found = await locate(folder, asked.path);
    return 'error' in found
      ? found
      : await readRegularFile(asked.path, found.file, { offset, limit });
  } catch (error) {
    const { code = 'an unknown error' } = error as NodeJS.ErrnoException;
    return { error: `${show(asked.path)} cannot be read: ${code}.` };
  }
}

/** The normalized path, or its fault; reads no file. */
function pathOf(path: unknown): { path: string } | { error: string } {
  if (typeof path !== 'string' || path.trim() === '') {
    return { error: 'path must be a text such as "references/guide.md".' };
  }
  if (!isCleanText(path) || Buffer.byteLength(path) > pathBytesMax) {
    return { error: `path must be Unicode without NUL, of at most ${pathBytesMax} bytes.` };
  }
  if (isAbsolute(path)) {
    return { error: `${show(path)} is an absolute path; give it relative to the skill's folder.` };
  }
  const relative = normalize(path).replace(/\/$/, '');
  const names = relative.split('/');
  if (names[0] === '..') return { error: leadsOut(path) };
  if (relative !== '.' && !names.every(isListed)) {
    return { error: isHidden(path) };
  }
  return { path: relative };
}

function wholeNumber(field: string, value: unknown): number | { error: string } {
  if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value);
  return { error: `${field} must be a whole number of bytes from 0.` };
}

/** The file at the path, if it is a regular file in the folder and not hidden. */
async function locate(folder: string, path: string): Promise<{ file: string } | { error: string }> {
  const file = await realpathOf(join(folder, path));
  if (file === undefined) return { error: await notThere(folder, path) };
  const root = await realpath(folder);
  if (!isWithin(root, file)) return { error: leadsOut(path) };
  if (!isVisible(root, file)) return { error: isHidden(path) };
  const stats = await stat(file);
  if (stats.isDirectory()) return { error: await isFolder(folder, path) };
  if (!stats.isFile()) return { error: `${show(path)} is no regular file.` };
  return { file };
}

async function readRegularFile(
  path: string,
  file: string,
  range: { offset: number; limit: number },
): Promise<SkillFileRead> {
  const handle = await open(file, openFlags);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) return { error: `${show(path)} is no regular file.` };
    return await readPart(handle, path, { ...range, size: stats.size });
  } finally {
    await handle.close();
  }
}

async function readPart(
  handle: FileHandle,
  path: string,
  { offset, limit, size }: { offset: number; limit: number; size: number },
): Promise<SkillFileRead> {
  if (size === 0) return { text: `${show(path)} is empty.` };
  if (offset >= size) return { error: `offset is beyond the end of ${show(path)}: ${size} bytes.` };
  const wanted = Math.min(Math.max(limit, readBytesMin), readBytesMax, size - offset);
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(wanted), 0, wanted, offset);
  const read = buffer.subarray(0, bytesRead);
  const start = offset > 0 ? continuationBytes(read) : 0;
  const decoded = decode(read.subarray(start), offset + bytesRead < size);
  if (decoded === undefined) {
    return { text: `${show(path)} is ${describeBytes(read, path)} of ${size} bytes; not shown.` };
  }
  const { text, length } = decoded;
  const next = offset + start + length;
  if (offset === 0 && next >= size) return { text };
  const place = `bytes ${offset + start} to ${next} of ${size}`;
  const advice = next < size ? `; read on with offset ${next}` : '';
  return { text: `${text}\n\n[Part of ${show(path)}: ${place}${advice}.]` };
}

/** Number of bytes at the start that continue an earlier character. */
function continuationBytes(bytes: Buffer): number {
  let count = 0;
  while (count < 3 && ((bytes[count] ?? 0) & 0xc0) === 0x80) count++;
  return count;
}

/**
 * The bytes as text and how many of them it is; undefined when they are no text. With `isPart` a
 * character that is cut at the end is left out.
 */
function decode(bytes: Buffer, isPart: boolean): { text: string; length: number } | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    const text = decoder.decode(bytes, { stream: isPart });
    return { text: text.replace(/^\uFEFF/, ''), length: Buffer.byteLength(text) };
  } catch {
    return undefined;
  }
}

async function notThere(folder: string, path: string): Promise<string> {
  const { paths } = await findSkillPaths(folder);
  const near = likest(path, paths, proposalsMax);
  if (near.length > 0) return `There is no file ${show(path)}. Near names: ${listed(near)}.`;
  const some = paths.slice(0, proposalsMax);
  return some.length === 0
    ? `There is no file ${show(path)}; the skill's folder has no files.`
    : `There is no file ${show(path)}. Files of the skill: ${listed(some)}.`;
}

async function isFolder(folder: string, path: string): Promise<string> {
  const { paths } = await findSkillPaths(folder);
  const inside = paths.filter((one) => path === '.' || one.startsWith(`${path}/`));
  if (inside.length === 0) return `${show(path)} is a folder without files.`;
  const more = inside.length > proposalsMax ? ` and ${inside.length - proposalsMax} more` : '';
  return `${show(path)} is a folder. Its files: ${listed(inside.slice(0, proposalsMax))}${more}.`;
}

const leadsOut = (path: string) => `${show(path)} leads out of the skill's folder.`;
const isHidden = (path: string) =>
  `${show(path)} is hidden; hidden files are no part of the skill.`;
const listed = (paths: readonly string[]) => paths.map(show).join(', ');

function show(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}

/** Undefined when the path does not exist. */
async function realpathOf(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG') return undefined;
    throw error;
  }
}
