/**
 * Tells when files below a directory of skills have changed. Watches each folder by itself, because a recursive
 * watch of Node on Linux also enters `node_modules`; of packages it watches npm's record of what is installed.
 * What a watch misses (for example in a folder made a moment ago) a slow comparison of times finds.
 */
import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Milliseconds in which further events of one save arrive. */
const settleMs = 25;
const compareEveryMs = 1_000;
/** Files and folders that are looked at. */
const entriesMax = 20_000;
/** What npm writes at the end of each installation, in `node_modules`. */
const installed = 'node_modules/.package-lock.json';

/** Calls `onChange` with the changed files, relative to `root`, once a save is over. */
export function watchSkills(root: string, onChange: (files: string[]) => void): () => void {
  const watchers = new Map<string, FSWatcher>();
  let known = timesOf(root);
  let timer: NodeJS.Timeout | undefined;

  const look = (): void => {
    timer = undefined;
    const now = timesOf(root);
    const names = new Set([...known.keys(), ...now.keys()]);
    const changed = [...names].filter((name) => known.get(name) !== now.get(name));
    known = now;
    watchFolders();
    const files = changed.filter((name) => now.get(name) !== 'folder');
    if (files.length > 0) onChange(files.map((name) => relative(root, name)));
  };
  const soon = (): void => {
    clearTimeout(timer);
    timer = setTimeout(look, settleMs);
  };
  function watchFolders(): void {
    const folders = new Set(
      [...known].filter(([, time]) => time === 'folder').map(([name]) => name),
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

/** By path: when a file changed and its size; `folder` of a folder. */
function timesOf(root: string): Map<string, string> {
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
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats !== undefined) times.set(path, `${stats.mtimeMs} ${stats.size} ${stats.ino}`);
}
