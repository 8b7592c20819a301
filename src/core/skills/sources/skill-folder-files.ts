/**
 * Lists the files of a SKILL.md skill: the regular files below its folder, without hidden names and
 * `node_modules`. Follows symbolic links only inside the folder and to names that are not hidden. Promises
 * that a list is bounded for any number and depth of files.
 */
import type { Dirent, Stats } from 'node:fs';
import { opendir, realpath, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

/** A file of a skill's folder. */
export interface SkillFile {
  /** Relative to the folder, with `/`. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
}

export interface SkillFiles {
  /** At most 200; those nearest to the top of the folder first. */
  readonly files: readonly SkillFile[];
  /** Files that are not listed. */
  readonly more: number;
  /** False when the folder is too large or too deep to be searched completely. */
  readonly isComplete: boolean;
}

const listedMax = 200;
/** Most entries of folders that one list searches. */
const entriesMax = 10_000;
/** How many folders deep files are listed. */
const depthMax = 16;
/**
 * Kubernetes keeps the files of a mounted ConfigMap in a folder with such a name (`..2026_03_01_10_00_00.`
 * and a number), and makes the visible names links to them.
 */
const mountedPattern = /^\.\.\d{4}_\d\d_\d\d_/;

/** The files of `folder`, without hidden ones and `node_modules`; none when it cannot be read. */
export async function listSkillFiles(folder: string): Promise<SkillFiles> {
  const { paths, isComplete } = await findSkillPaths(folder);
  const files: SkillFile[] = [];
  for (const path of paths.slice(0, listedMax)) {
    const size = await sizeOf(join(folder, path));
    if (size !== undefined) files.push({ path, size });
  }
  return { files, more: Math.max(0, paths.length - listedMax), isComplete };
}

/** A folder that is still to be searched. */
interface Pending {
  readonly path: string;
  /** Without symbolic links. */
  readonly real: string;
  readonly depth: number;
}

/** Paths of the regular files, folder by folder from the top; each real folder once. Never throws. */
export async function findSkillPaths(
  folder: string,
): Promise<{ paths: string[]; isComplete: boolean }> {
  const paths: string[] = [];
  const root = (await targetOf(folder))?.real;
  if (root === undefined) return { paths, isComplete: true };
  const pending: Pending[] = [{ path: '', real: root, depth: 0 }];
  const seen = new Set([root]);
  let isComplete = true;
  let left = entriesMax;
  for (const dir of pending) {
    const entries = await entriesOf(dir.real, left + 1);
    if (entries.length > left) isComplete = false;
    for (const entry of entries.slice(0, left).filter(({ name }) => isListed(name))) {
      const path = dir.path === '' ? entry.name : `${dir.path}/${entry.name}`;
      const { kind, real } = await resolve(root, join(dir.real, entry.name), entry.kind);
      if (kind === 'file') paths.push(path);
      if (kind !== 'folder' || seen.has(real)) continue;
      seen.add(real);
      if (dir.depth + 1 < depthMax) pending.push({ path, real, depth: dir.depth + 1 });
      else isComplete = false;
    }
    left = Math.max(0, left - entries.length);
  }
  return { paths, isComplete };
}

type Kind = 'file' | 'folder' | 'link' | 'other';

/** Resolves a link that stays inside `root` and is not hidden; returns every other entry unchanged. */
async function resolve(
  root: string,
  path: string,
  kind: Kind,
): Promise<{ kind: Kind; real: string }> {
  if (kind !== 'link') return { kind, real: path };
  const target = await targetOf(path);
  const isOpen =
    target !== undefined && isWithin(root, target.real) && isVisible(root, target.real);
  return isOpen ? target : { kind: 'other', real: path };
}

/** Undefined when a path does not exist or is a cycle of links. */
async function targetOf(path: string): Promise<{ kind: Kind; real: string } | undefined> {
  try {
    const real = await realpath(path);
    return { kind: kindOf(await stat(real)), real };
  } catch {
    return undefined;
  }
}

/** The first `max` entries by name; none of a folder that cannot be read. */
async function entriesOf(dir: string, max: number): Promise<{ name: string; kind: Kind }[]> {
  const entries: { name: string; kind: Kind }[] = [];
  try {
    for await (const entry of await opendir(dir)) {
      if (entries.length >= max) break;
      entries.push({ name: entry.name, kind: kindOf(entry) });
    }
  } catch {
    // An unreadable folder ends the list early.
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function kindOf(entry: Dirent | Stats): Kind {
  if (entry.isSymbolicLink()) return 'link';
  if (entry.isDirectory()) return 'folder';
  return entry.isFile() ? 'file' : 'other';
}

/** The names that the search for modules skips, except those that begin with an underscore. */
export function isListed(name: string): boolean {
  return !name.startsWith('.') && name !== 'node_modules';
}

/** Both without symbolic links. */
export function isWithin(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
}

/**
 * Whether no name between `root` and `path` inside it is hidden, except the folder of a ConfigMap mount.
 * Both paths are without symbolic links.
 */
export function isVisible(root: string, path: string): boolean {
  const [first = '', ...names] = relative(root, path).split(sep);
  return (isListed(first) || mountedPattern.test(first)) && names.every(isListed);
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch {
    return undefined;
  }
}
