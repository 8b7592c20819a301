/**
 * The marker in a data directory whose content is being moved into PostgreSQL, or has been. It is
 * written before the first row is copied, so that no platform starts on the directory afterwards.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { syncToDisk } from '../../kernel/directory.ts';

export interface MoveMarker {
  /** Is recorded in the PostgreSQL database too, in the transaction that fills it. */
  readonly id: string;
  /** Which database: host, port and name. */
  readonly into: string;
  readonly begun_at: string;
  /** Null until it is known that everything has arrived. */
  readonly finished_at: string | null;
}

/** Path of the marker's file. */
export const moveMarkerFile = (dataDir: string): string => join(dataDir, 'moved-to-cluster');

/** The marker; null where there is none. Throws an error for the operator when it cannot be read. */
export function readMoveMarker(dataDir: string): MoveMarker | null {
  const file = moveMarkerFile(dataDir);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const move = parsed(text);
  if (move === null) {
    throw new Error(
      `${file} says that this data directory was moved into PostgreSQL, but not where to: start with DATABASE_URL. If it was not moved, delete the file.`,
    );
  }
  return move;
}

function parsed(text: string): MoveMarker | null {
  try {
    const move = JSON.parse(text) as Partial<MoveMarker> | null;
    const isMove = /^[\da-f-]{36}$/.test(move?.id ?? '') && typeof move?.into === 'string';
    return isMove ? (move as MoveMarker) : null;
  } catch {
    return null;
  }
}

/** Writes the marker atomically; it is on disk when this returns. */
export function writeMoveMarker(dataDir: string, move: MoveMarker): void {
  const file = moveMarkerFile(dataDir);
  const next = `${file}.new`;
  writeFileSync(next, `${JSON.stringify(move, null, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(next, file);
  syncToDisk(dataDir);
}

/** Deletes the marker, after a move that was rolled back. */
export function removeMoveMarker(dataDir: string): void {
  rmSync(moveMarkerFile(dataDir), { force: true });
  syncToDisk(dataDir);
}

/** Throws an error for the operator when the directory has a marker. */
export function refuseMovedDirectory(dataDir: string): void {
  const move = readMoveMarker(dataDir);
  if (move === null) return;
  const file = moveMarkerFile(dataDir);
  if (move.finished_at !== null) {
    throw new Error(
      `The data of ${dataDir} was moved into PostgreSQL (${move.into}) on ${move.finished_at}: start with DATABASE_URL. What is in the directory is from before the move; to go back to it, delete ${file}.`,
    );
  }
  throw new Error(
    `A move of ${dataDir} into PostgreSQL (${move.into}) was begun and not finished: run "npm run migrate-to-cluster" again. To go on without it, make sure that no platform uses that database, and delete ${file}.`,
  );
}
