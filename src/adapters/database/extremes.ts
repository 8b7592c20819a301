/** The functions that give the least or the greatest of their arguments, as each database calls them. */
import { type RawBuilder, sql } from 'kysely';
import type { Dialect } from './database.ts';

export function leastOf(dialect: Dialect): RawBuilder<unknown> {
  return sql.raw(dialect === 'sqlite' ? 'min' : 'least');
}

export function greatestOf(dialect: Dialect): RawBuilder<unknown> {
  return sql.raw(dialect === 'sqlite' ? 'max' : 'greatest');
}
