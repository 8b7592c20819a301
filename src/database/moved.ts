/**
 * The mark in a data directory whose content is being moved into PostgreSQL or was: written before
 * the first row leaves, so that from then on nobody starts on both.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { syncToDisk } from '../kernel/directory.ts';

export interface Move {
  /** Is recorded in the PostgreSQL database too, in the transaction that fills it. */
  readonly id: string;
  /** Which database: host, port and name. */
  readonly into: string;
  readonly begun_at: string;
  /** Null until it is known that everything has arrived. */
  readonly finished_at: string | null;
}

/** The file that is the mark. */
export const moveFile = (dataDir: string): string => join(dataDir, 'moved-to-cluster');

/** The mark; null where there is none. Throws a sentence for one that cannot be read. */
export function readMove(dataDir: string): Move | null {
  const file = moveFile(dataDir);
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

function parsed(text: string): Move | null {
  try {
    const move = JSON.parse(text) as Partial<Move> | null;
    const isMove = /^[\da-f-]{36}$/.test(move?.id ?? '') && typeof move?.into === 'string';
    return isMove ? (move as Move) : null;
  } catch {
    return null;
  }
}

/** Writes the mark, whole or not at all, and on disk when this returns. */
export function writeMove(dataDir: string, move: Move): void {
  const file = moveFile(dataDir);
  const next = `${file}.new`;
  writeFileSync(next, `${JSON.stringify(move, null, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(next, file);
  syncToDisk(dataDir);
}

/** Takes the mark away, after a move of which nothing has arrived. */
export function removeMove(dataDir: string): void {
  rmSync(moveFile(dataDir), { force: true });
  syncToDisk(dataDir);
}

/** Throws a sentence where a mark is. */
export function refuseMoved(dataDir: string): void {
  const move = readMove(dataDir);
  if (move === null) return;
  const file = moveFile(dataDir);
  if (move.finished_at !== null) {
    throw new Error(
      `The data of ${dataDir} was moved into PostgreSQL (${move.into}) on ${move.finished_at}: start with DATABASE_URL. What is in the directory is from before the move; to go back to it, delete ${file}.`,
    );
  }
  throw new Error(
    `A move of ${dataDir} into PostgreSQL (${move.into}) was begun and not finished: run "npm run migrate-to-cluster" again. To go on without it, make sure that nobody uses that database, and delete ${file}.`,
  );
}
