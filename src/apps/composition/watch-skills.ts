/**
 * Tells when files below a directory of skills have changed. Watches each folder by itself, because a recursive
 * watch of Node on Linux also enters `node_modules`; of packages it watches npm's record of what is installed.
 * What a watch misses (for example in a folder made a moment ago) a slow comparison of times finds.
 */
import { type FSWatcher, readdirSync, watch } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { stampOf } from '../../core/skills/sources/load-plan.ts';

/** Milliseconds in which further events of one save arrive. */
const settleMs = 25;
const compareEveryMs = 1_000;
/** Files and folders that are looked at. */
const entriesMax = 20_000;
/** What npm writes at the end of each installation, in `node_modules`. */
const installed = 'node_modules/.package-lock.json';

/**
 * Calls `onChange` with the paths of changed files below `root` and of `others`, once a save is over. Others come with
 * what `stampOf` gave when they were read.
 */
export function watchSkills(
  root: string,
  others: () => ReadonlyMap<string, string>,
  onChange: (files: string[]) => void,
): () => void {
  const watchers = new Map<string, FSWatcher>();
  let known = timesOf(root, others().keys());
  let timer: NodeJS.Timeout | undefined;

  const look = (): void => {
    timer = undefined;
    const wanted = others();
    const now = timesOf(root, wanted.keys());
    const names = new Set([...known.keys(), ...now.keys()]);
    const changed = [...names].filter((name) => known.get(name) !== now.get(name));
    const isNoFile = (name: string) => (now.get(name) ?? known.get(name)) === 'folder';
    const files = changed.filter((name) => {
      if (isNoFile(name)) return false;
      if (isBelow(root, name) || name.endsWith(installed)) return true;
      // It may be watched only now, or no longer.
      return wanted.has(name) && (known.get(name) ?? wanted.get(name)) !== now.get(name);
    });
    known = now;
    watchFolders();
    if (files.length > 0) onChange(files);
  };
  const soon = (): void => {
    clearTimeout(timer);
    timer = setTimeout(look, settleMs);
  };
  function watchFolders(): void {
    const folders = new Set(
      [...known].flatMap(([name, time]) => {
        if (time === 'folder') return [name];
        return isBelow(root, name) || isPackaged(name) ? [] : [dirname(name)];
      }),
    );
    for (const [folder, watcher] of watchers) {
      if (folders.has(folder)) continue;
      watcher.close();
      watchers.delete(folder);
    }
    for (const folder of folders) {
      if (watchers.has(folder)) continue;
      try {
        watchers.set(
          folder,
          watch(folder, soon).on('error', () => watchers.delete(folder)),
        );
      } catch {
        // Gone again, or too many watches: the comparison finds its changes.
      }
    }
  }

  watchFolders();
  const comparing = setInterval(look, compareEveryMs);
  comparing.unref();
  return () => {
    clearInterval(comparing);
    clearTimeout(timer);
    for (const watcher of watchers.values()) watcher.close();
  };
}

function isBelow(root: string, path: string): boolean {
  return path.startsWith(root + sep) && !isPackaged(path);
}

function isPackaged(path: string): boolean {
  return path.includes(`${sep}node_modules${sep}`);
}

/** By path: when a file changed and its size; `folder` of a folder. */
function timesOf(root: string, others: Iterable<string>): Map<string, string> {
  const times = new Map<string, string>();
  const visit = (folder: string): void => {
    times.set(folder, 'folder');
    for (const entry of entriesOf(folder)) {
      if (times.size >= entriesMax) return;
      const path = join(folder, entry.name);
      if (entry.name === 'node_modules' || entry.name.startsWith('.')) continue;
      if (entry.isDirectory()) visit(path);
      else note(times, path);
    }
  };
  visit(root);
  for (const path of others) if (!times.has(path)) note(times, path);
  for (let folder = root; ; folder = dirname(folder)) {
    note(times, join(folder, installed));
    if (folder === dirname(folder)) return times;
  }
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function note(times: Map<string, string>, path: string): void {
  const stamp = stampOf(path);
  if (stamp !== 'none') times.set(path, stamp);
}
