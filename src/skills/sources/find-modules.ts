/**
 * Finds the skills in the skill directories: `.ts .mts .js .mjs` files, recursively, in the order of their
 * paths. Skips declarations, tests, `node_modules` and names that begin with a dot (hidden) or an
 * underscore (shared code). A folder with a `SKILL.md` is one skill, and its other files are not searched.
 * Follows a symbolic link only inside its directory. A link that leads out or to nothing is refused and
 * not skipped, so that no skill is dropped silently. Each file is listed once, even when several links
 * lead to it.
 */
import { readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { SkillLoadError } from './load-error.ts';
import { isWithin } from './skill-folder-files.ts';

const modulePattern = /\.m?[jt]s$/;
const noSkill = /\.(?:d|test)\.m?[jt]s$/;

/** The file names of SKILL.md skills; the first is the standard's, both are in use. */
const skillMdNames = ['SKILL.md', 'skill.md'];

interface Visit {
  /** The real path of the directory that is searched. */
  readonly root: string;
  readonly seen: Set<string>;
  readonly onFault: (fault: SkillLoadError) => void;
}

/** Absolute paths. Throws SkillLoadError for what is refused, unless `onFault` takes it. */
export function findSkillFiles(
  dirs: readonly string[],
  onFault: Visit['onFault'] = (fault) => {
    throw fault;
  },
): string[] {
  const seen = new Set<string>();
  return dirs.flatMap((dir) => filesOf(resolve(dir), seen, onFault));
}

/** Whether a found file is a SKILL.md. */
export function isSkillMd(file: string): boolean {
  return skillMdNames.includes(basename(file));
}

function isModule(file: string): boolean {
  return modulePattern.test(file) && !noSkill.test(file);
}

function filesOf(root: string, seen: Set<string>, onFault: Visit['onFault']): string[] {
  if (statOf(root)?.isDirectory() !== true) throw new SkillLoadError(root, 'is not a directory');
  return walk(root, { root: realpathSync(root), seen, onFault });
}

function walk(dir: string, visit: Visit): string[] {
  const real = realpathSync(dir);
  if (visit.seen.has(real)) return [];
  visit.seen.add(real);
  const names = entriesOf(dir);
  const skillMd = skillMdNames.find((name) => names.includes(name));
  if (skillMd !== undefined) return skillMdFile(join(dir, skillMd), visit.root);
  return names.flatMap((name) => {
    try {
      return entryFound(join(dir, name), visit);
    } catch (error) {
      if (!(error instanceof SkillLoadError)) throw error;
      visit.onFault(error);
      return [];
    }
  });
}

function entryFound(path: string, visit: Visit): string[] {
  const stats = statOf(path);
  if (stats === undefined && !isModule(path)) return [];
  if (stats === undefined) throw new SkillLoadError(path, 'is a symbolic link to nothing');
  if (!stats.isDirectory() && !isModule(path)) return [];
  const target = targetOf(path, visit.root);
  if (stats.isDirectory()) return walk(path, visit);
  if (!stats.isFile() || visit.seen.has(target)) return [];
  visit.seen.add(target);
  return [path];
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

/** Names in the order of their code units, the same on every machine. */
function entriesOf(dir: string): string[] {
  try {
    return readdirSync(dir)
      .filter((name) => !/^[._]/.test(name) && name !== 'node_modules')
      .sort();
  } catch (error) {
    throw new SkillLoadError(dir, `cannot be read: ${(error as Error).message}`);
  }
}

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}
