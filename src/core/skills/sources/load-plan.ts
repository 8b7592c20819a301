/**
 * A load that imports only what has changed, for an author who saves often. The plan says which skills are as they
 * were: they are imported at their first run. A file that does not load keeps its last version that did.
 */
import { statSync } from 'node:fs';
import type { LoadedSkill } from './modules.ts';

export interface LoadPlan {
  /** Skills whose files have not changed. */
  readonly unchanged: readonly LoadedSkill[];
  /** Files that are not imported, because they would fail again or never end. */
  readonly avoided: readonly string[];
  /** The last versions that loaded, of files that are imported or avoided. */
  readonly kept: readonly KeptSkill[];
}

/** A skill with the texts of the modules that it had when it loaded. */
export interface KeptSkill {
  readonly skill: LoadedSkill;
  readonly files: readonly LoadedFile[];
}

/** A file that was read while a skill loaded. */
export interface LoadedFile {
  readonly path: string;
  /** What `stampOf` gave just before it was read. */
  readonly stamp: string;
  /** Null for a CommonJS module, one of a package and one that is too large. */
  readonly text: string | null;
  readonly format: string | null;
}

/** A text that differs once the file has changed. */
export function stampOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? 'none' : `${stats.mtimeMs} ${stats.size} ${stats.ino}`;
}
