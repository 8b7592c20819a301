import type { SelectQueryBuilder } from 'kysely';
import type { Dialect } from './database.ts';

/**
 * The query with its rows locked until the transaction ends: against changes, or as `lock` says. SQLite
 * has one writer at a time, so it needs no row locks.
 */
export function locked<DB, TB extends keyof DB, O>(
  dialect: Dialect,
  query: SelectQueryBuilder<DB, TB, O>,
  lock = (unlocked: SelectQueryBuilder<DB, TB, O>) => unlocked.forUpdate(),
): SelectQueryBuilder<DB, TB, O> {
  return dialect === 'sqlite' ? query : lock(query);
}
