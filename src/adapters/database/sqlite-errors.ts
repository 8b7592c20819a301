/** What an error of SQLite is to a caller. */
import { unavailable } from './database.ts';

export function translated<T>(query: () => T): T {
  try {
    return query();
  } catch (error) {
    throw asPlatformError(error);
  }
}

/** Primary result codes that say the database cannot be used now: busy, I/O, full, corrupt, cannot open. */
const unavailableCodes = new Set([5, 6, 8, 10, 11, 13, 14, 26]);

/** Whether another connection holds the lock that is needed. */
export function isBusy(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === 5;
}

/** Whether the file is damaged, or is no database. */
export function isDamaged(error: unknown): boolean {
  const { cause, errcode } = (error ?? {}) as { cause?: unknown; errcode?: number };
  return [11, 26].includes((errcode ?? 0) & 0xff) || (cause !== undefined && isDamaged(cause));
}

export function asPlatformError(error: unknown): unknown {
  const { code, errcode } = error as { code?: string; errcode?: number };
  // Node's own word for a connection that is closed.
  if (code === 'ERR_INVALID_STATE') return unavailable(error);
  return errcode !== undefined && unavailableCodes.has(errcode & 0xff) ? unavailable(error) : error;
}

/** Result codes that say that nothing can be written: read only, I/O, damaged, full, cannot open, no database. */
const refusedCodes = new Set([8, 10, 11, 13, 14, 26]);

/** Whether SQLite refused a write for a reason that most likely holds for the next one too. */
export function isRefusedWrite(error: unknown): boolean {
  const { errcode } = (error ?? {}) as { errcode?: number };
  return errcode !== undefined && refusedCodes.has(errcode & 0xff);
}
