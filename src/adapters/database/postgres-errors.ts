/** What the errors of PostgreSQL and its driver mean. */
import { unavailable } from './database.ts';

/** The answer of a query, with errors in the platform's terms. */
export async function translated<T>(query: Promise<T>): Promise<T> {
  try {
    return await query;
  } catch (error) {
    throw inOurTerms(error);
  }
}

export function inOurTerms(error: unknown): unknown {
  return isOutage(error) ? unavailable(error) : error;
}

/**
 * SQLSTATE classes 08 (connection), 53 (resources), 57 (operator intervention), 58 (system), 25006 (read only), a database that
 * accepts no connections, and errors without a SQLSTATE: sockets that broke, a pool that timed out.
 */
export function isOutage(error: unknown): boolean {
  const { code, routine } = error as { code?: unknown; routine?: unknown };
  if (typeof code !== 'string') return error instanceof Error && !(error instanceof TypeError);
  if (code === '55000') return routine === 'CheckMyDatabase';
  return /^(08|53|57|58)/.test(code) || code === '25006' || /^E[A-Z]+$/.test(code);
}

/**
 * Whether PostgreSQL refused a write for a reason that most likely holds for the next one too: read only, a full disk or
 * another lack of resources but that of connections, an I/O error.
 */
export function isRefusedWrite(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return code === '25006' || (/^(53|58)/.test(String(code)) && code !== '53300');
}

/** Whether the session takes no writes; `error` is in the platform's terms. */
export function isReadOnly(error: unknown): boolean {
  const { cause } = (error ?? {}) as { cause?: { code?: unknown } };
  return cause?.code === '25006';
}

/** Whether the transaction was rolled back for a reason that may be gone when it is run again. */
export function isGivenUp(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '40P01' || code === '40001' || isOutdated(error);
}

/** Whether a prepared statement gives other columns since a newer version has changed the schema. */
export function isOutdated(error: unknown): boolean {
  const { code, routine } = (error ?? {}) as { code?: unknown; routine?: unknown };
  return code === '0A000' && routine === 'RevalidateCachedQuery';
}
