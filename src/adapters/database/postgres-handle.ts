/** The queries of the program, as statements for PostgreSQL. */
import type { Insertable, Kysely } from 'kysely';
import type { Handle } from './database.ts';
import type { Answer, Step } from './pipeline.ts';
import { toArray, toValue } from './postgres-values.ts';
import type { CompiledStatement, Statement } from './statement.ts';
import type { Tables } from './tables.ts';

/** Bounds on one statement: its rows, and the characters of their longest column. */
const rowsPerInsert = 1_000;
const charactersPerInsert = 4_000_000;

/** Runs statements in the order in which they were given. */
export interface Runner {
  /** Runs statements; the i-th answer is the i-th one's. */
  run(steps: readonly Step[]): Promise<Answer[]>;
  /** Runs statements whose results no caller needs; they may be delayed. */
  runLater(steps: readonly Step[]): Promise<void>;
}

interface NamedStatement {
  readonly name: string;
  readonly compiled: CompiledStatement;
}

/** The statements of a process, compiled once and named, so that the server keeps their plans. */
export class Statements {
  readonly #kysely: Kysely<Tables>;
  readonly #typeOf: (table: string, column: string) => string;
  readonly #known = new Map<object, NamedStatement>();
  readonly #inserts = new Map<string, { name: string; text: string }>();

  /** `typeOf` says the type of a table's column. */
  constructor(kysely: Kysely<Tables>, typeOf: (table: string, column: string) => string) {
    this.#kysely = kysely;
    this.#typeOf = typeOf;
  }

  of<P, R>(source: Statement<P, R>): NamedStatement {
    let found = this.#known.get(source);
    if (found === undefined) {
      const compiled = source.compiledFor(this.#kysely, 'postgres');
      found = { name: `s${this.#known.size}`, compiled };
      this.#known.set(source, found);
    }
    return found;
  }

  /** The name and text that insert rows with these columns, one parameter for each. */
  inserting(table: string, columns: readonly string[]): { name: string; text: string } {
    const key = `${table}:${columns.join()}`;
    let found = this.#inserts.get(key);
    if (found === undefined) {
      // One list for each column: a text that stays the same, however many rows there are.
      const lists = columns.map((column, i) => `$${i + 1}::${this.#typeOf(table, column)}[]`);
      const names = columns.map((column) => `"${column}"`);
      const text = `insert into "${table}" (${names}) select * from unnest(${lists})`;
      found = { name: `i${this.#inserts.size}`, text };
      this.#inserts.set(key, found);
    }
    return found;
  }
}

/** `kyselyOf` makes the Kysely instance at its first use: the hot path does without. */
export function handleOver(
  runner: Runner,
  kyselyOf: () => Kysely<Tables>,
  statements: Statements,
): Handle {
  let kysely: Kysely<Tables> | undefined;
  function step<P, R>(source: Statement<P, R>, params: P, givesRows: boolean): Step {
    const { name, compiled } = statements.of(source);
    return { name, text: compiled.text, values: compiled.bind(params).map(toValue), givesRows };
  }
  async function all<P, R>(source: Statement<P, R>, params: P): Promise<R[]> {
    const [answer] = await runner.run([step(source, params, true)]);
    return (answer?.rows ?? []) as R[];
  }
  return {
    dialect: 'postgres',
    get kysely() {
      kysely ??= kyselyOf();
      return kysely;
    },
    all,
    async first<P, R>(source: Statement<P, R>, params: P) {
      const [row] = await all(source, params);
      return row;
    },
    async changes<P>(source: Statement<P, unknown>, params: readonly P[]) {
      if (params.length === 0) return [];
      const answers = await runner.run(params.map((one) => step(source, one, false)));
      return answers.map(({ rowCount }) => rowCount);
    },
    async each<P>(source: Statement<P, unknown>, params: readonly P[]) {
      if (params.length > 0) await runner.runLater(params.map((one) => step(source, one, false)));
    },
    async insert<T extends keyof Tables>(table: T, rows: readonly Insertable<Tables[T]>[]) {
      const [first] = rows;
      if (first === undefined) return;
      const columns = Object.keys(first);
      const statement = statements.inserting(table, columns);
      const steps = portionsOf(rows as readonly Row[], columns).map((portion) => ({
        ...statement,
        values: columns.map((column) => toArray(portion.map((row) => row[column]))),
        givesRows: false,
      }));
      await runner.runLater(steps);
    },
  };
}

type Row = Readonly<Record<string, unknown>>;

/** Rows in portions of which each is a statement of bearable size. */
function portionsOf(rows: readonly Row[], columns: readonly string[]): (readonly Row[])[] {
  const portions: (readonly Row[])[] = [];
  let from = 0;
  let characters = 0;
  for (const [i, row] of rows.entries()) {
    const own = columns.reduce((sum, column) => sum + lengthOf(row[column]), 0);
    if (i > from && (i - from === rowsPerInsert || characters + own > charactersPerInsert)) {
      portions.push(rows.slice(from, i));
      from = i;
      characters = 0;
    }
    characters += own;
  }
  portions.push(from === 0 ? rows : rows.slice(from));
  return portions;
}

function lengthOf(value: unknown): number {
  return typeof value === 'string' ? value.length : 0;
}
