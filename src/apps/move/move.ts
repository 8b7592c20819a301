/**
 * Moves an embedded installation's data into PostgreSQL: all of it, in one transaction, or nothing.
 * A marker in the data directory keeps the embedded platform from starting on it during and
 * after the move. The marker and the transaction have the id of the move, so after an interruption the
 * next try knows whether the last one was committed.
 */
import { existsSync } from 'node:fs';
import type { Database, Handle, Transaction } from '../../adapters/database/database.ts';
import {
  type MoveMarker,
  moveMarkerFile,
  readMoveMarker,
  removeMoveMarker,
  writeMoveMarker,
} from '../../adapters/database/move-marker.ts';
import { openPostgres } from '../../adapters/database/postgres.ts';
import { openSqlite, sqliteFile } from '../../adapters/database/sqlite.ts';
import { type Clock, timestamp } from '../../kernel/clock.ts';
import { newId } from '../../kernel/ids.ts';
import type { Logger } from '../../kernel/log.ts';
import { planMove } from './plan.ts';
import { copyRows } from './rows.ts';
import {
  analyze,
  countRows,
  holdTables,
  recordMove,
  refuseData,
  setSequences,
  wasMovedHere,
  withoutIndexes,
} from './target.ts';

/** An index of many millions of rows takes a while. */
const statementTimeoutMs = 3_600_000;

export interface Moved {
  /** Host, port and name of the database. */
  readonly into: string;
  /** True when an earlier try had committed, but was interrupted before it could report that. */
  readonly wasThere: boolean;
}

/** Moves the data of `dataDir` into the database at `url`; calls `onTable` for each moved table. */
export async function moveToPostgres(parts: {
  dataDir: string;
  url: string;
  clock: Clock;
  log: Logger;
  onTable(name: string, rows: number): void;
}): Promise<Moved> {
  const { dataDir, url, clock, log, onTable } = parts;
  if (!existsSync(sqliteFile(dataDir))) {
    throw new Error(`DATA_DIR: there is no embedded database in ${dataDir}`);
  }
  const source = await openSqlite(dataDir, log, { evenIfMoved: true });
  let target: Database | undefined;
  try {
    const into = nameOf(url);
    const earlier = earlierMove(dataDir, url);
    target = await openPostgres(url, log, { statementTimeoutMs });
    const move = earlier ?? {
      id: newId(),
      into,
      begun_at: timestamp(clock.now()),
      finished_at: null,
    };
    if (earlier === null) writeMoveMarker(dataDir, move);
    let isWritten = false;
    let wasThere = false;
    try {
      await target.write(async (tx) => {
        isWritten = false;
        wasThere = await fill(source.read, tx, move, onTable);
        isWritten = true;
      });
    } catch (error) {
      // A connection that breaks after the last write leaves open whether the transaction was committed.
      if (earlier === null && !isWritten) removeMoveMarker(dataDir);
      throw error;
    }
    writeMoveMarker(dataDir, { ...move, finished_at: timestamp(clock.now()) });
    return { into, wasThere };
  } finally {
    await target?.close();
    await source.close();
  }
}

/** The earlier try that was interrupted, null when there was none. Throws when it was finished, or went elsewhere. */
export function earlierMove(dataDir: string, url: string): MoveMarker | null {
  const earlier = readMoveMarker(dataDir);
  if (earlier === null) return null;
  if (earlier.finished_at !== null) {
    throw new Error(
      `The data of ${dataDir} was moved into ${earlier.into} on ${earlier.finished_at} already: start with DATABASE_URL. To move it again, delete ${moveMarkerFile(dataDir)} and give an empty database.`,
    );
  }
  if (earlier.into !== nameOf(url)) {
    throw new Error(
      `A move of ${dataDir} into ${earlier.into} was begun and may have arrived: go on with that DATABASE_URL. If that database is not to be used, delete ${moveMarkerFile(dataDir)} first.`,
    );
  }
  return earlier;
}

/** The work of the transaction; true when an earlier try of this move has filled the database. */
async function fill(
  source: Handle,
  tx: Transaction,
  move: MoveMarker,
  onTable: (name: string, rows: number) => void,
): Promise<boolean> {
  const { copied, derived } = await planMove(source, tx);
  const names = [...copied, ...derived].map(({ name }) => name);
  await holdTables(tx, names);
  if (await wasMovedHere(tx, move.id)) return true;
  await refuseData(tx, names);
  const makeIndexes = await withoutIndexes(tx, names);
  const verified = async (name: string) => {
    const [expected, found] = await Promise.all([countRows(source, name), countRows(tx, name)]);
    if (expected !== found) {
      throw new Error(`Of ${expected} rows of ${name}, ${found} arrived: nothing was moved`);
    }
    onTable(name, found);
  };
  for (const table of copied) {
    await copyRows(source, tx, table);
    await setSequences(tx, table);
    await verified(table.name);
  }
  for (const table of derived) {
    await table.make(tx);
    await verified(table.name);
  }
  await makeIndexes();
  await analyze(tx, names);
  await recordMove(tx, move.id);
  return false;
}

/** Host, port and database of a URL, without its password. */
function nameOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url);
  const host = hostname || searchParams.get('host') || 'localhost';
  return `${decodeURIComponent(host)}:${port || '5432'}${pathname}`;
}
