import type { Dialect } from '../database.ts';

/** The parts of the schema that are written differently for the two databases. */
export interface SchemaTypes {
  /** A primary key whose numbers the database gives. */
  readonly key: string;
  /** The same; a deleted row's number is not given again. */
  readonly neverReusedKey: string;
  readonly bytes: string;
  readonly bits: string;
  /** In SQLite the rows live in the tree of the primary key: one tree less to write. */
  readonly clustered: string;
  /**
   * For rows that are updated soon after their insertion. In PostgreSQL a page keeps room for them: where no indexed
   * column changes, no index is touched, and otherwise the log gets a third less.
   */
  readonly roomy: string;
  /** The text for one of the databases, empty for the other. */
  readonly only: Readonly<Record<Dialect, (text: string) => string>>;
}

/** Statements in their order; empty ones are left out. */
export type SchemaPart = (t: SchemaTypes) => readonly string[];

const itself = (text: string) => text;
const nothing = () => '';

export const schemaTypes: Readonly<Record<Dialect, SchemaTypes>> = {
  sqlite: {
    key: 'integer not null primary key',
    neverReusedKey: 'integer not null primary key autoincrement',
    bytes: 'blob',
    bits: 'blob',
    clustered: 'without rowid',
    roomy: 'without rowid',
    only: { sqlite: itself, postgres: nothing },
  },
  postgres: {
    key: 'bigserial not null primary key',
    neverReusedKey: 'bigserial not null primary key',
    bytes: 'bytea',
    bits: 'bit varying',
    clustered: '',
    roomy: 'with (fillfactor = 50)',
    only: { sqlite: nothing, postgres: itself },
  },
};
