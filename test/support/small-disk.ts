/** A disk so small that a test can fill it: a file system in memory, which only root may mount. */
import { execFileSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface SmallDisk {
  readonly path: string;
  /** Takes all the room that is left. */
  fill(): void;
  /** Gives it back. */
  free(): void;
  close(): void;
}

/** Whether this machine lets us mount one; says why not. */
export function canMount(): boolean {
  if (process.getuid?.() === 0) {
    try {
      mountSmallDisk(1).close();
      return true;
    } catch {
      // Root without the right to mount, as in most containers.
    }
  }
  process.stderr.write(
    '\nOnly root may mount a small disk: the tests that fill one are skipped.\n',
  );
  return false;
}

/** Mounts one of so many MiB, which `owner` may write to. */
export function mountSmallDisk(
  megabytes: number,
  owner: { readonly uid: number; readonly gid: number } | null = null,
): SmallDisk {
  // Another account may not be able to enter a private TMPDIR.
  const path = mkdtempSync('/tmp/skillwright-disk-');
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'skillwright-test', path], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  } catch (error) {
    rmSync(path, { recursive: true });
    throw error;
  }
  if (owner !== null) chownSync(path, owner.uid, owner.gid);
  const ballast = join(path, 'ballast');
  return {
    path,
    fill() {
      const block = Buffer.alloc(64 * 1024);
      for (let size = block.length; size >= 512; size /= 2) {
        try {
          for (;;) writeFileSync(ballast, block.subarray(0, size), { flag: 'a' });
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
    },
    free: () => rmSync(ballast, { force: true }),
    close() {
      // Lazily: a process that is just ending may still have a file open.
      execFileSync('umount', ['--lazy', path]);
      rmSync(path, { recursive: true, force: true });
    },
  };
}
