/**
 * The file of the skills snapshot: the first child records in it the modules that it loaded, and every
 * later child loads from it until the pool is restarted (`skills/sources/snapshot.ts`). The file is
 * unlinked at once, so it vanishes with its last user.
 */
import { closeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { Clock } from '../../kernel/clock.ts';
import { openUnnamedFile } from '../../kernel/unnamed-file.ts';

/** Milliseconds for which a file that ended a child is not loaded. */
const setAsideMs = 60_000;
/** Files that are set aside at a time; their paths are an argument of the child. */
const setAsideMax = 20;

export interface SnapshotFile {
  /** File descriptor. */
  readonly fd: number;
  /** Makes children that start within the next minute skip a file that ended one of them. */
  setAside(file: string): void;
  /** The files that a new child skips. */
  filesSetAside(): string[];
  /** Closes the file; called when no more children will start. */
  close(): void;
}

/** Throws when no file can be made. */
export function openSnapshotFile(clock: Clock): SnapshotFile {
  const fd = openUnnamed();
  const aside = new Map<string, number>();
  return {
    fd,
    setAside(file) {
      if (aside.size < setAsideMax) aside.set(file, clock.monotonic() + setAsideMs);
    },
    filesSetAside() {
      for (const [file, until] of aside) if (until <= clock.monotonic()) aside.delete(file);
      return [...aside.keys()];
    },
    close: () => closeSync(fd),
  };
}

function openUnnamed(): number {
  try {
    return openUnnamedFile('skills');
  } catch (error) {
    throw new Error(
      `the skills cannot be recorded in ${tmpdir()}: ${(error as Error).message}; set TMPDIR to a directory that can be written to`,
    );
  }
}
