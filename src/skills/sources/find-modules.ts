/**
 * Which files of the skill directories are skills: `.ts .mts .js .mjs`, recursively, without
 * declarations, tests, `node_modules` and names that begin with a dot (hidden) or an underscore
 * (what skills share), in the order of their paths. A symbolic link is followed only to a place inside its directory; one that leads out, or nowhere, is refused
 * instead of skipped, so that no skill is dropped in silence. A file is listed once, however many
 * links and directories lead to it.
 */
import { readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import { SkillLoadError } from './load-error.ts';

const MODULE = /\.m?[jt]s$/;
const NO_SKILL = /\.(?:d|test)\.m?[jt]s$/;

/** Absolute paths. Throws SkillLoadError for a directory that cannot be read. */
export function findModuleFiles(dirs: readonly string[]): string[] {
  const seen = new Set<string>();
  return dirs.flatMap((dir) => filesOf(resolve(dir), seen)).filter(isModule);
}

function isModule(file: string): boolean {
  return MODULE.test(file) && !NO_SKILL.test(file);
}

function filesOf(root: string, seen: Set<string>): string[] {
  if (statOf(root)?.isDirectory() !== true) throw new SkillLoadError(root, 'is not a directory');
  return walk(root, { root: realpathSync(root), seen });
}

function walk(dir: string, visit: { root: string; seen: Set<string> }): string[] {
  const real = realpathSync(dir);
  if (visit.seen.has(real)) return [];
  visit.seen.add(real);
  return entriesOf(dir).flatMap((name) => {
    const path = join(dir, name);
    const stats = statOf(path);
    if (stats === undefined && !isModule(name)) return [];
    if (stats === undefined) throw new SkillLoadError(path, 'is a symbolic link to nothing');
    if (!stats.isDirectory() && !isModule(name)) return [];
    const target = realpathSync(path);
    if (target !== visit.root && !target.startsWith(visit.root + sep)) {
      throw new SkillLoadError(path, `is a symbolic link that leads out of ${visit.root}`);
    }
    if (stats.isDirectory()) return walk(path, visit);
    if (!stats.isFile() || visit.seen.has(target)) return [];
    visit.seen.add(target);
    return [path];
  });
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
