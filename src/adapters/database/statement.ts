/**
 * Statements of the hot path: written once with Kysely, so that the compiler checks tables and
 * columns, compiled once for each dialect, and from then on only bound to values.
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

/** Stands for a value of the parameters `P`. */
export type Parameter<P> = <K extends keyof P & string>(name: K) => RawBuilder<P[K]>;

/** The parameters that are lists of texts. */
type ListName<P> = {
  [K in keyof P & string]: P[K] extends readonly string[] ? K : never;
}[keyof P & string];

/** Texts as one parameter, for `idIn` and the like. */
export function listOf<P>(_param: Parameter<P>, name: ListName<P>): RawBuilder<string> {
  return sql<string>`${new Placeholder(name, true)}`;
}

type Build<P, R> = (db: Kysely<Tables>, param: Parameter<P>, dialect: Dialect) => Compilable<R>;

/** A query over parameters `P` that yields rows `R`. Its identity is the cache key. */
export class Statement<P, R> {
  readonly #build: Build<P, R>;
  /** Kept for all connections and databases of a process: the text depends on the dialect alone. */
  readonly #compiled = new Map<Dialect, CompiledStatement>();

  constructor(build: Build<P, R>) {
    this.#build = build;
  }

  /** Its text and values; `db` has the dialect. */
  compiledFor(db: Kysely<Tables>, dialect: Dialect): CompiledStatement {
    let compiled = this.#compiled.get(dialect);
    if (compiled === undefined) {
      const { sql: text, parameters } = this.#build(db, placeholder, dialect).compile();
      compiled = new CompiledStatement(text, parameters);
      this.#compiled.set(dialect, compiled);
    }
    return compiled;
  }
}

/** Declares a statement: `statement<{ id: string }>()((db, p) => db.selectFrom(…).where('id', '=', p('id')))`. */
export function statement<P>() {
  return <R>(build: Build<P, R>) => new Statement(build);
}

/**
 * Declares a statement as the function that runs it and gives all its rows. `allRows<P, Transaction>()`
 * is for one that only a transaction may run.
 */
export function allRows<P, H extends Handle = Handle>() {
  return <R>(build: Build<P, R>) => {
    const declared = new Statement(build);
    return (db: H, params: P): Promise<R[]> => db.all(declared, params);
  };
}

/** Like `allRows`; the function gives the first row. */
export function firstRow<P, H extends Handle = Handle>() {
  return <R>(build: Build<P, R>) => {
    const declared = new Statement(build);
    return (db: H, params: P): Promise<R | undefined> => db.first(declared, params);
  };
}

/** SQL text and the values of its parameters, in their order. */
export class CompiledStatement {
  readonly text: string;
  /** Constants, and placeholders of named values. */
  readonly #values: readonly unknown[];

  constructor(text: string, values: readonly unknown[]) {
    this.text = text;
    this.#values = values;
  }

  bind(params: unknown): unknown[] {
    return this.#values.map((value) =>
      value instanceof Placeholder ? boundValue(value, params as Record<string, unknown>) : value,
    );
  }
}

/** An insert of a row, whose values are parameters under the names of their columns. */
export function compileInsert(table: string, columns: readonly string[]): CompiledStatement {
  const text = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
  return new CompiledStatement(
    text,
    columns.map((column) => new Placeholder(column, false)),
  );
}

function placeholder(name: string): RawBuilder<never> {
  return sql<never>`${new Placeholder(name, false)}`;
}

function boundValue({ name, isList }: Placeholder, params: Record<string, unknown>): unknown {
  return isList ? JSON.stringify(params[name]) : params[name];
}
