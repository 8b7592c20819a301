/**
 * Statements of the hot path: written once with Kysely, so that the compiler checks tables and
 * columns, compiled once for each database, and from then on only bound to values.
 */
import { type Compilable, type Kysely, type RawBuilder, sql } from 'kysely';
import type { Dialect, Handle } from './database.ts';
import type { Tables } from './tables.ts';

/** Stands in a compiled query's parameter list where a named value will go. */
class Placeholder {
  readonly name: string;
  /** Whether the value is a list of texts, which is bound as the JSON array that `idIn` takes. */
  readonly isList: boolean;
  constructor(name: string, isList: boolean) {
    this.name = name;
    this.isList = isList;
  }
}

interface Parameter<P> {
  <K extends keyof P & string>(name: K): RawBuilder<P[K]>;
  /** Texts as one parameter, for `idIn` and the like. */
  list(name: ListName<P>): RawBuilder<string>;
}

/** The parameters that are lists of texts. */
type ListName<P> = {
  [K in keyof P & string]: P[K] extends readonly string[] ? K : never;
}[keyof P & string];

/** A query over parameters `P` that yields rows `R`. Its identity is the cache key. */
export interface Statement<P, R> {
  readonly build: (db: Kysely<Tables>, param: Parameter<P>, dialect: Dialect) => Compilable<R>;
}

/** Declares a statement: `statement<{ id: string }>()((db, p) => db.selectFrom(…).where('id', '=', p('id')))`. */
export function statement<P>() {
  return <R>(build: Statement<P, R>['build']): Statement<P, R> => ({ build });
}

/**
 * Declares a statement as the function that runs it and gives all its rows. `allRows<P, Transaction>()`
 * is for one that only a transaction may run.
 */
export function allRows<P, H extends Handle = Handle>() {
  return <R>(build: Statement<P, R>['build']) => {
    const declared: Statement<P, R> = { build };
    return (db: H, params: P): Promise<R[]> => db.all(declared, params);
  };
}

/** Like `allRows`; the function gives the first row. */
export function firstRow<P, H extends Handle = Handle>() {
  return <R>(build: Statement<P, R>['build']) => {
    const declared: Statement<P, R> = { build };
    return (db: H, params: P): Promise<R | undefined> => db.first(declared, params);
  };
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
  const { sql: text, parameters } = statement.build(db, parameter, dialect).compile();
  return {
    text,
    bind: (params) =>
      parameters.map((value) =>
        value instanceof Placeholder ? boundValue(value, params as Record<string, unknown>) : value,
      ),
  };
}

const parameter = Object.assign((name: string) => sql<never>`${new Placeholder(name, false)}`, {
  list: (name: string) => sql<string>`${new Placeholder(name, true)}`,
});

function boundValue({ name, isList }: Placeholder, params: Record<string, unknown>): unknown {
  return isList ? JSON.stringify(params[name]) : params[name];
}
