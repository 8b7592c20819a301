/** The context of a build of an image: the files of a folder that its `.dockerignore` lets through, and COPY from them. */
import { cpSync, existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import dockerignore from '@balena/dockerignore';

/** Copies what a builder would be sent of `from` into `to`. */
export function sendContext(from: string, to: string): void {
  const lines = readFileSync(join(from, '.dockerignore'), 'utf8').split('\n');
  const rules = dockerignore.default().add(lines);
  const exceptions = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
  const visit = (folder: string): void => {
    for (const entry of readdirSync(join(from, folder), { withFileTypes: true })) {
      const path = join(folder, entry.name);
      const isIgnored = rules.ignores(path);
      if (entry.isDirectory()) {
        // A folder that is left out may have an exception in it.
        if (!isIgnored || exceptions.some((one) => one.startsWith(`${path}/`))) visit(path);
      } else if (!isIgnored) copyFiles(join(from, path), join(to, path));
    }
  };
  visit('');
}

/** COPY: `words` are sources in `root` and a target in `workdir`. Throws where a builder refuses. */
export function copyInto(root: string, workdir: string, words: readonly string[]): void {
  const sources = words.slice(0, -1).flatMap((source) => found(root, source));
  const target = words.at(-1) ?? '';
  const isFolder = /(^|\/)\.?$/.test(target);
  if (sources.length > 1 && !isFolder) throw new Error(`${target} must end with a slash`);
  for (const source of sources) {
    const to = join(workdir, target);
    // Of a folder its content is copied.
    const isPlaced = isFolder && !statSync(source).isDirectory();
    copyFiles(source, isPlaced ? join(to, basename(source)) : to);
  }
}

function found(root: string, source: string): string[] {
  const matches = /[*?[]/.test(source)
    ? globSync(source, { cwd: root }).map((path) => join(root, path))
    : [join(root, source)].filter((path) => existsSync(path));
  if (matches.length === 0) throw new Error(`There is no ${source} to copy from`);
  return matches;
}

function copyFiles(from: string, to: string): void {
  cpSync(from, to, { recursive: true, verbatimSymlinks: true });
}
