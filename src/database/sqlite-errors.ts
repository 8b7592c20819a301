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

export function asPlatformError(error: unknown): unknown {
  const { code, errcode } = error as { code?: string; errcode?: number };
  // Node's own word for a connection that is closed.
  if (code === 'ERR_INVALID_STATE') return unavailable(error);
  return errcode !== undefined && unavailableCodes.has(errcode & 0xff) ? unavailable(error) : error;
}
