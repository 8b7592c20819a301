/**
 * Statements of the hot path: written once with Kysely, so that the compiler checks tables and
 * columns, compiled once for each database, and from then on only bound to values.
 */
import { type Compilable, type Kysely, type RawBuilder, sql } from 'kysely';
import type { Dialect } from './database.ts';
import type { Tables } from './tables.ts';

/** Stands in a compiled query's parameter list where a named value will go. */
class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

type Parameter<P> = <K extends keyof P & string>(name: K) => RawBuilder<P[K]>;

/** A query over parameters `P` that yields rows `R`. Its identity is the cache key. */
export interface Statement<P, R> {
  readonly build: (db: Kysely<Tables>, param: Parameter<P>, dialect: Dialect) => Compilable<R>;
}

/** Declares a statement: `statement<{ id: string }>()((db, p) => db.selectFrom(…).where('id', '=', p('id')))`. */
export function statement<P>() {
  return <R>(build: Statement<P, R>['build']): Statement<P, R> => ({ build });
}

/** SQL text and, in order, what each of its placeholders takes from the parameters. */
export interface CompiledStatement {
  readonly text: string;
  bind(params: unknown): unknown[];
}

export function compile<P, R>(
  db: Kysely<Tables>,
  statement: Statement<P, R>,
  dialect: Dialect,
): CompiledStatement {
  const { sql: text, parameters } = statement
    .build(db, (name) => sql`${new Placeholder(name)}`, dialect)
    .compile();
  return {
    text,
    bind: (params) =>
      parameters.map((value) =>
        value instanceof Placeholder ? (params as Record<string, unknown>)[value.name] : value,
      ),
  };
}
