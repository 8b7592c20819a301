/**
 * Finds the skills in the skill directories: `.ts .mts .js .mjs` files, recursively, in the order of their
 * paths. Skips declarations, tests, `node_modules` and names that begin with a dot (hidden) or an
 * underscore (shared code). A folder with a `SKILL.md` is one skill, and its other files are not searched.
 * Follows a symbolic link only inside its directory. A link that leads out or to nothing is refused and
 * not skipped, so that no skill is dropped silently; where it is a `SKILL.md`, that skill alone is left out. Each file is
 * listed once, even when several links lead to it. The search is bounded in depth and in entries.
 */
import { type Dirent, opendirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { SkillLoadError } from './load-error.ts';
import { isWithin } from './skill-folder-files.ts';

const modulePattern = /\.m?[jt]s$/;
const noSkill = /\.(?:d|test)\.m?[jt]s$/;

/** The file names of SKILL.md skills; the first is the standard's, both are in use. */
const skillMdNames = ['SKILL.md', 'skill.md'];

/** Entries of a directory of skills, in all its folders. */
export const entriesMax = 50_000;
/** How many folders deep skills are found. */
export const depthMax = 32;

export interface SearchFault {
  readonly error: SkillLoadError;
  /** Whether it costs one skill or one folder alone; else it is a fault of a module, or of a whole directory. */
  readonly isLeftOut: boolean;
}

export interface SkillSearch {
  /** Absolute paths. */
  readonly files: readonly string[];
  readonly faults: readonly SearchFault[];
}

interface Visit {
  /** The real path of the directory that is searched. */
  readonly root: string;
  readonly seen: Set<string>;
  readonly faults: SearchFault[];
  /** Entries that may still be read. */
  left: number;
}

/** A folder that is searched. */
interface Folder {
  readonly path: string;
  /** Without symbolic links. */
  readonly real: string;
  readonly depth: number;
}

/** Throws SkillLoadError where a path is no directory. */
export function findSkillFiles(dirs: readonly string[]): SkillSearch {
  const seen = new Set<string>();
  const faults: SearchFault[] = [];
  return { files: dirs.flatMap((dir) => filesOf(resolve(dir), seen, faults)), faults };
}

/** Whether a found file is a SKILL.md. */
export function isSkillMd(file: string): boolean {
  return skillMdNames.includes(basename(file));
}

/** Why a directory of more entries than `entriesMax` is refused. */
export function tooManyEntries(dir: string): SkillLoadError {
  return new SkillLoadError(
    dir,
    `holds more than ${entriesMax} files and folders: keep skills in a directory of their own`,
  );
}

function isModule(file: string): boolean {
  return modulePattern.test(file) && !noSkill.test(file);
}

function filesOf(path: string, seen: Set<string>, faults: SearchFault[]): string[] {
  if (statOf(path)?.isDirectory() !== true) throw new SkillLoadError(path, 'is not a directory');
  const root = realpathSync(path);
  const visit = { root, seen, faults, left: entriesMax };
  const files = walk({ path, real: root, depth: 0 }, visit);
  if (visit.left < 0) faults.push({ error: tooManyEntries(path), isLeftOut: false });
  return files;
}

function walk(folder: Folder, visit: Visit): string[] {
  if (visit.seen.has(folder.real) || visit.left < 0) return [];
  visit.seen.add(folder.real);
  const entries = entriesOf(folder.path, visit);
  const skillMd = skillMdNames.find((name) => entries.some((entry) => entry.name === name));
  if (skillMd !== undefined) {
    return orFault(visit, true, () => skillMdFile(join(folder.path, skillMd), visit.root));
  }
  return entries.flatMap((entry) => orFault(visit, false, () => entryFound(entry, folder, visit)));
}

function orFault({ faults }: Visit, isLeftOut: boolean, find: () => string[]): string[] {
  try {
    return find();
  } catch (error) {
    if (!(error instanceof SkillLoadError)) throw error;
    faults.push({ error, isLeftOut });
    return [];
  }
}

function entryFound(entry: Dirent, folder: Folder, visit: Visit): string[] {
  const path = join(folder.path, entry.name);
  // Only a link needs another check: a chain of folders is searched in time that is linear in its length.
  const isLink = entry.isSymbolicLink();
  const stats = isLink ? statOf(path) : entry;
  if (stats === undefined && !isModule(path)) return [];
  if (stats === undefined) throw new SkillLoadError(path, 'is a symbolic link to nothing');
  if (!stats.isDirectory() && !isModule(path)) return [];
  const real = isLink ? targetOf(path, visit.root) : join(folder.real, entry.name);
  if (stats.isDirectory()) return folderFound({ path, real, depth: folder.depth + 1 }, visit);
  if (!stats.isFile() || visit.seen.has(real)) return [];
  visit.seen.add(real);
  return [path];
}

function folderFound(folder: Folder, visit: Visit): string[] {
  if (folder.depth <= depthMax) return walk(folder, visit);
  const fault = `is more than ${depthMax} folders deep: skills in it are not found`;
  visit.faults.push({ error: new SkillLoadError(folder.path, fault), isLeftOut: true });
  return [];
}

function skillMdFile(path: string, root: string): string[] {
  const stats = statOf(path);
  if (stats === undefined) throw new SkillLoadError(path, 'is a symbolic link to nothing');
  targetOf(path, root);
  if (!stats.isFile()) throw new SkillLoadError(path, 'must be a regular file');
  return [path];
}

function targetOf(path: string, root: string): string {
  const target = realpathSync(path);
  if (isWithin(root, target)) return target;
  throw new SkillLoadError(path, `is a symbolic link that leads out of ${root}`);
}

/** In the order of the code units of their names, the same on every machine; none beyond the limit. */
function entriesOf(path: string, visit: Visit): Dirent[] {
  const entries: Dirent[] = [];
  try {
    const dir = opendirSync(path);
    try {
      for (let entry = dir.readSync(); entry !== null && visit.left >= 0; entry = dir.readSync()) {
        visit.left -= 1;
        entries.push(entry);
      }
    } finally {
      dir.closeSync();
    }
  } catch (error) {
    throw new SkillLoadError(path, `cannot be read: ${(error as Error).message}`);
  }
  return entries
    .filter(({ name }) => !/^[._]/.test(name) && name !== 'node_modules')
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Undefined where the path leads to nothing. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // A link to itself.
    if (code === 'ELOOP') return undefined;
    throw new SkillLoadError(path, `cannot be read: ${message}`);
  }
}
