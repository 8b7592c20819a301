import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a directory for this user alone, with those above it. Level by level: Node's own recursive
 * mkdir never comes back where the system makes no directories, as under /proc.
 */
export function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return;
    const parent = dirname(path);
    if (code !== 'ENOENT' || parent === path || existsSync(parent)) throw error;
    makeDirectory(parent);
    mkdirSync(path, { mode: 0o700 });
  }
}

/** Makes an empty file for this user alone; takes others' rights from one that is there. */
export function makePrivateFile(path: string): void {
  closeSync(openSync(path, 'a', 0o600));
  keepPrivate(path);
}

/** Takes all rights to a file from other users, where it is there and this user's own. */
export function keepPrivate(path: string): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o077) === 0) return;
  try {
    chmodSync(path, mode & 0o700);
  } catch (error) {
    // A file of another user, which that user has shared.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
  }
}

/** Brings a file, or the names in a directory, onto the disk. */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
