import { type CreateTableBuilder, sql } from 'kysely';
import type { Dialect } from '../database.ts';

/** In SQLite the rows live in the primary key's tree itself: one tree to write less. */
export const clusteredIn =
  (dialect: Dialect) =>
  <T extends string, C extends string>(table: CreateTableBuilder<T, C>): CreateTableBuilder<T, C> =>
    dialect === 'sqlite' ? table.modifyEnd(sql`without rowid`) : table;
