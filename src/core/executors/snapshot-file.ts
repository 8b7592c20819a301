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

export class SnapshotFile {
  /** File descriptor. */
  readonly fd: number;
  readonly #clock: Clock;
  /** Until when each file is set aside, in the clock's monotonic milliseconds. */
  readonly #aside = new Map<string, number>();

  /** Throws when no file can be made. */
  constructor(clock: Clock) {
    this.fd = openUnnamed();
    this.#clock = clock;
  }

  /** Makes children that start within the next minute skip a file that ended one of them. */
  setAside(file: string): void {
    if (this.#aside.size < setAsideMax) this.#aside.set(file, this.#clock.monotonic() + setAsideMs);
  }

  /** The files that a new child skips. */
  filesSetAside(): string[] {
    for (const [file, until] of this.#aside) {
      if (until <= this.#clock.monotonic()) this.#aside.delete(file);
    }
    return [...this.#aside.keys()];
  }

  /** Closes the file; called when no more children will start. */
  close(): void {
    closeSync(this.fd);
  }
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
