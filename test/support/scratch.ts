/**
 * Where a run of the tests keeps its files: a directory in memory, where the machine has room for
 * one, because the tests make and remove thousands of databases and a real disk would make every
 * commit of theirs wait. What survives a killed process does not depend on it, only what survives a
 * power cut does, and no test cuts the power.
 */
import { chmodSync, mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const memory = '/dev/shm';
const prefix = 'skillwright-tests-';
/** A container often has 64 MiB of it. */
const bytesNeeded = 3 * 1024 ** 3;

/**
 * Makes the directory, which becomes the TMPDIR of this process and of those that it starts. It goes
 * with this process; what a killed run has left goes with the next.
 */
export function useScratchDirectory(): void {
  const parent = hasRoom(memory) ? memory : tmpdir();
  removeOrphans(parent);
  const directory = join(parent, `${prefix}${process.pid}`);
  mkdirSync(directory, { recursive: true });
  // As /tmp is: PostgreSQL runs under another account, and makes and removes its data below.
  chmodSync(directory, 0o1777);
  process.env['TMPDIR'] = directory;
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
}

/** The directory of this run; undefined outside of a run of the tests. */
export function scratchDirectory(): string | undefined {
  return tmpdir().includes(`/${prefix}`) ? tmpdir() : undefined;
}

function hasRoom(directory: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize >= bytesNeeded;
  } catch {
    return false;
  }
}

function removeOrphans(parent: string): void {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(prefix) || isAlive(Number(name.slice(prefix.length)))) continue;
    rmSync(join(parent, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another account's process is alive too.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
