/** The requests of a run that gives or reads a file, and their answers. Both processes use them. */
import type { SkillFile } from '../skills/definition.ts';

/** Bytes of a file in one message: as base64 they are within the bounds of a request and of an answer. */
export const transferBytes = 512 * 1024;

/** A part of a file that a run gives: answered with the number of its upload, the last one with the file. */
export interface FilePiece {
  /** Null for the first part. */
  readonly upload: number | null;
  readonly name: string;
  readonly base64: string;
  readonly isLast: boolean;
}

/** A part of a file that a run reads. */
export interface ReadFile {
  /** In the first answer alone. */
  readonly file?: SkillFile;
  readonly base64: string;
  /** By which the next part is requested; null where there is none. */
  readonly reading: number | null;
}
