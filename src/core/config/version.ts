/** The version of the program that runs, as `/health`, the logs and `skillwright --version` show it. */
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const root = join(import.meta.dirname, '../../..');
/** As many digits as identify a commit of this repository. */
const commitDigits = 8;

/**
 * The version of the package, in a checkout with its commit as build metadata (`0.1.0+4701ba47`), so that reports and
 * rollouts of a checkout name what runs. A package has no commit: it is identified by its version.
 */
export function runningVersion(): string {
  const commit = checkedOutCommit(join(root, '.git'));
  return commit === null
    ? packageVersion()
    : `${packageVersion()}+${commit.slice(0, commitDigits)}`;
}

/** The version of the package alone. */
export function packageVersion(): string {
  const file = join(root, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/**
 * The commit that is checked out: read from git's files, because git is not needed to run a checkout and starting it
 * costs some milliseconds. `git` is the path of `.git`: a directory, or in a linked worktree a file that names one.
 * Null where there is no repository, or one of a format that this reader does not know.
 */
export function checkedOutCommit(git: string): string | null {
  try {
    const directory = gitDirectory(git);
    const head = readLine(join(directory, 'HEAD'));
    const ref = /^ref: (refs\/\S+)$/.exec(head)?.[1];
    if (ref === undefined) return commitIn(head);
    const shared = sharedDirectory(directory);
    return looseCommit(join(shared, ref)) ?? packedCommit(join(shared, 'packed-refs'), ref);
  } catch {
    return null;
  }
}

function gitDirectory(git: string): string {
  try {
    const linked = /^gitdir: (.+)$/.exec(readLine(git))?.[1];
    return linked === undefined ? git : resolve(dirname(git), linked);
  } catch {
    return git;
  }
}

/** A linked worktree keeps its branches in the repository that it belongs to. */
function sharedDirectory(directory: string): string {
  try {
    return resolve(directory, readLine(join(directory, 'commondir')));
  } catch {
    return directory;
  }
}

function looseCommit(file: string): string | null {
  try {
    return commitIn(readLine(file));
  } catch {
    return null;
  }
}

function packedCommit(file: string, ref: string): string | null {
  const lines = readFileSync(file, 'utf8').split('\n');
  return commitIn(lines.find((line) => line.endsWith(` ${ref}`)) ?? '');
}

function readLine(file: string): string {
  return readFileSync(file, 'utf8').trim();
}

function commitIn(text: string): string | null {
  return /^[0-9a-f]{40,64}(?= |$)/.exec(text)?.[0] ?? null;
}
