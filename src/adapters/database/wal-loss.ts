/**
 * Finds what SQLite left out when it recovered its write-ahead log (WAL): it takes the frames up to the last commit
 * whose salts and checksums are right, and ignores everything behind it in silence. That is right after a crash, which
 * can leave a transaction behind that was not committed; after a damaged or shortened file it is a loss.
 *
 * The wal-index of the process before counts the committed frames, so it tells the two apart. Without it, as after a
 * power failure, frames of more than one transaction behind the recovered ones do: SQLite begins a transaction only when
 * the one before is on disk (synchronous=FULL).
 */
import { constants, copyFileSync, rmSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { Logger } from '../../kernel/log.ts';
import { type FoundWal, walHeaderBytes } from './wal.ts';

/** The largest database that a start checks, in bytes: the check reads all of it, for about a second. */
const checkedMax = 256 * 1024 * 1024;
/** Copies of damaged logs that are kept beside the database. */
const copiesMax = 10;
/** Faults that the check names. */
const faultsMax = 5;

/** What SQLite has not recovered. */
export interface WalLoss {
  readonly wal_bytes: number;
  readonly recovered_frames: number;
  /** Committed frames that were not recovered; null when no wal-index counts them. */
  readonly lost_frames: number | null;
  readonly ignored_bytes: number;
  readonly reason: string;
}

/**
 * Logs what SQLite has left out, checks the database, and keeps a copy of the WAL, which SQLite would overwrite. To be
 * called before the first write.
 */
export function reportWalLoss(
  connection: DatabaseSync,
  file: string,
  found: FoundWal,
  log: Logger,
): void {
  const loss = lossOf(found, recoveredFrames(connection));
  if (loss === null) return;
  const copied = copyOf(`${file}-wal`, found.bytes);
  // Frames that were left out must not be taken for those of later transactions by the next start.
  connection.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const faults = faultsIn(connection, file);
  log.error(
    { ...loss, database: file, ...copied, quick_check: faults },
    `SQLite has left out a part of its log (WAL): jobs that were accepted, and other changes, are missing. ${copied.copy === null ? 'No copy of the log was kept' : 'A copy of the log was kept'}. Restore a backup if they matter more than what came after it (docs/backup.md)`,
  );
  if (faults !== null && faults !== 'ok') {
    log.error(
      { database: file, quick_check: faults },
      'the database is damaged: stop the platform and restore a backup (docs/backup.md)',
    );
  }
}

/**
 * Asked of SQLite, not read from the wal-index: a process that closes a file loses all its locks on it, and with
 * them the sign to other processes that this one uses the index. The next one to come would make the index anew.
 */
function recoveredFrames(connection: DatabaseSync): number {
  const row = connection.prepare('PRAGMA wal_checkpoint(NOOP)').get();
  return Math.max(0, Number(row?.['log'] ?? 0));
}

/** Copies a damaged WAL: the path of the copy, or why there is none. An earlier copy is never overwritten. */
function copyOf(wal: string, bytes: number): { copy: string | null; no_copy?: string } {
  if (bytes === 0) return { copy: null, no_copy: 'it is missing or empty' };
  for (let n = 1; n <= copiesMax; n += 1) {
    const copy = n === 1 ? `${wal}.damaged` : `${wal}.damaged-${n}`;
    try {
      copyFileSync(wal, copy, constants.COPYFILE_EXCL);
      return { copy };
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'EEXIST') continue;
      // What a disk without room has taken of it is no copy.
      rmSync(copy, { force: true });
      return { copy: null, no_copy: message };
    }
  }
  return { copy: null, no_copy: `there are ${copiesMax} copies of damaged logs: move them away` };
}

/** `ok`, or the first faults; null where the database is too large to be checked at a start. */
function faultsIn(connection: DatabaseSync, file: string): string | null {
  if (statSync(file).size > checkedMax) return null;
  const rows = connection.prepare(`PRAGMA quick_check(${faultsMax})`).all();
  return rows.map(({ quick_check: fault }) => String(fault)).join('; ');
}

/** Compares a WAL with what SQLite has recovered of it; null when nothing that was committed is missing. */
function lossOf(found: FoundWal, recovered: number): WalLoss | null {
  const { bytes, salts, frameBytes, commits, index } = found;
  const frames = salts === null ? 0 : recovered;
  const used = frames === 0 ? 0 : walHeaderBytes + frames * frameBytes;
  const loss = (lost_frames: number | null, reason: string): WalLoss => ({
    ...{ wal_bytes: bytes, recovered_frames: frames, lost_frames },
    ...{ ignored_bytes: Math.max(0, bytes - used), reason },
  });
  if (index !== null && index.frames > 0) {
    const isSame = salts === null || index.salts === salts;
    // The wal-index is of this generation: it counts what was committed.
    if (isSame) {
      const kept = Math.max(frames, index.copied === index.frames ? index.frames : 0);
      if (kept >= index.frames) return null;
      return loss(index.frames - frames, reasonOf(found));
    }
  }
  if (salts === null) {
    return bytes > walHeaderBytes ? loss(null, reasonOf(found)) : null;
  }
  const ignored = commits.filter((last) => last > frames);
  return ignored.length > 1 ? loss(null, reasonOf(found)) : null;
}

function reasonOf({ bytes, salts, frameBytes }: FoundWal): string {
  if (bytes === 0) return 'the WAL is missing or empty';
  if (salts === null) return 'the header of the WAL is damaged';
  if ((bytes - walHeaderBytes) % frameBytes !== 0) return 'the WAL ends in the middle of a frame';
  return 'a frame of the WAL is damaged, or the WAL was shortened';
}
