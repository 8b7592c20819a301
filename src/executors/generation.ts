/**
 * A generation of skills: what one load found, and what every executor of it runs until the pool is
 * started anew. Its first child records the modules into a file, the others load from that file
 * (`skills/sources/snapshot.ts`). The file has no name, so nothing is left of it when its users end.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../kernel/clock.ts';

/** Milliseconds for which a file that ended a child is not loaded. */
const SET_ASIDE_MS = 60_000;
/** Files that are set aside at a time; their paths are an argument of the child. */
const SET_ASIDE_MAX = 20;

export interface Generation {
  readonly snapshotFd: number;
  /** Has children that start within the next minute pass over a file that ended one of them. */
  setAside(file: string): void;
  /** The files that a child is to pass over. */
  filesSetAside(): string[];
  /** To be called when no child of it is started any more. */
  close(): void;
}

/** Throws when no file can be made. */
export function openGeneration(clock: Clock): Generation {
  const snapshotFd = openUnnamed();
  const aside = new Map<string, number>();
  return {
    snapshotFd,
    setAside(file) {
      if (aside.size < SET_ASIDE_MAX) aside.set(file, clock.monotonic() + SET_ASIDE_MS);
    },
    filesSetAside() {
      for (const [file, until] of aside) if (until <= clock.monotonic()) aside.delete(file);
      return [...aside.keys()];
    },
    close: () => closeSync(snapshotFd),
  };
}

function openUnnamed(): number {
  const file = join(tmpdir(), `skillwright-skills-${randomUUID()}`);
  try {
    const fd = openSync(file, 'wx+', 0o600);
    unlinkSync(file);
    return fd;
  } catch (error) {
    throw new Error(
      `the skills cannot be recorded in ${tmpdir()}: ${(error as Error).message}; set TMPDIR to a directory that can be written to`,
    );
  }
}
