/**
 * Statements that travel to PostgreSQL together and are answered together: one round trip however
 * many they are. When one fails, the server skips those after it. node-postgres takes this for one
 * query of its own (its `Submittable`); a query of its own for each statement costs a round trip,
 * or four times the work. docs/decisions/postgres-pipeline.md has the reason for the undocumented members.
 */
import pg from 'pg';
import type { Value } from './postgres-values.ts';

export interface Step {
  /** Under which the server keeps the statement prepared; empty for one that is not kept. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly Value[];
  /** Whether its rows are of interest. */
  readonly givesRows: boolean;
}

export interface Answer {
  readonly rows: Record<string, unknown>[];
  /** The first word of the server's command tag. */
  readonly command: string;
  /** How many rows it gave or changed. */
  readonly rowCount: number;
}

/** The answers of the statements that succeeded, and the error of the one after them. */
export interface Outcome {
  readonly answers: readonly Answer[];
  readonly error?: Error;
}

/** A connection of node-postgres, as far as statements need it. */
export type Connection = Pick<pg.ClientBase, 'query'>;

/** Runs statements in their order on a connection; never throws. */
export function runTogether(client: Connection, steps: readonly Step[]): Promise<Outcome> {
  return new Promise((resolve) => {
    client.query(new Pipeline(steps, resolve));
  });
}

/** Prepares a connection's statements again, after their result types have changed. */
export function forgetPrepared(client: Connection): void {
  const connection = (client as unknown as { connection?: Wire }).connection;
  const known = connection && prepared.get(connection);
  if (known === undefined) return;
  for (const name of known.keys()) known.set(name, undefined);
}

/** The messages that node-postgres lets a query of ours send. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void; destroy(): void };
  parse(message: { name: string; text: string }): void;
  bind(message: { statement: string; values: readonly Value[] }): void;
  describe(message: { type: 'P' | 'S'; name: string }): void;
  execute(): void;
  close(message: { type: 'P' | 'S'; name: string }): void;
  sync(): void;
}

interface Columns {
  readonly names: readonly string[];
  readonly parsers: readonly ((text: string) => unknown)[];
  /** A row without values. A copy of it has all columns at once, which costs less than adding one after the other. */
  readonly blank: Readonly<Record<string, unknown>>;
}

/**
 * The statements that the server has prepared on a connection, with the columns of those that give
 * rows; undefined for one of which it is not certain.
 */
const prepared = new WeakMap<Wire, Map<string, Columns | undefined>>();

const ignored = () => {};
const noStep: Step = { name: '', text: '', values: [], givesRows: false };

const noColumns: Columns = { names: [], parsers: [], blank: {} };

class Pipeline implements pg.Submittable {
  #steps: readonly Step[];
  #resolve: (outcome: Outcome) => void;
  #answers: Answer[] = [];
  #known = new Map<string, Columns | undefined>();
  /** Of the statement that is being answered. */
  #columns: Columns | undefined;
  #rows: Record<string, unknown>[] = [];
  /** Why a row could not be read. */
  #unreadable: Error | undefined;

  /** node-postgres puts one in its place that ends the timer of the query. */
  callback: (error?: Error) => void = () => {};

  constructor(steps: readonly Step[], resolve: (outcome: Outcome) => void) {
    this.#steps = steps;
    this.#resolve = resolve;
  }

  submit(connection: pg.Connection): void {
    const wire = connection as unknown as Wire;
    const known = prepared.get(wire) ?? new Map<string, Columns | undefined>();
    prepared.set(wire, known);
    this.#known = known;
    const sent = new Set<string>();
    wire.stream.cork();
    for (const { name, text, values, givesRows } of this.#steps) {
      if (known.get(name) === undefined && !sent.has(name)) {
        // One that may be there already could not be prepared again.
        if (known.has(name)) wire.close({ type: 'S', name });
        wire.parse({ name, text });
        if (name !== '') {
          known.set(name, undefined);
          sent.add(name);
        }
      }
      wire.bind({ statement: name, values });
      if (givesRows && !known.get(name)?.names.length) wire.describe({ type: 'P', name: '' });
      wire.execute();
    }
    wire.sync();
    wire.stream.uncork();
  }

  handleRowDescription({ fields }: { fields: { name: string; dataTypeID: number }[] }): void {
    const names = fields.map(({ name }) => name);
    this.#columns = {
      names,
      parsers: fields.map(({ dataTypeID }) => pg.types.getTypeParser(dataTypeID)),
      blank: Object.fromEntries(names.map((name) => [name, null])),
    };
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.#columns ??= this.#known.get(this.#step().name) ?? noColumns;
    const { names, parsers, blank } = this.#columns;
    if (names.length === 0) return;
    try {
      const row: Record<string, unknown> = { ...blank };
      for (let i = 0; i < names.length; i++) {
        const text = fields[i] ?? null;
        if (text !== null) row[names[i] as string] = parsers[i]?.(text);
      }
      this.#rows.push(row);
    } catch (error) {
      this.#unreadable ??= error as Error;
    }
  }

  /** `INSERT 0 5`, `UPDATE 5`, `COMMIT`. */
  handleCommandComplete({ text }: { text: string }): void {
    const words = text.split(' ');
    this.#answered(words[0] ?? '', Number(words.at(-1)) || 0);
  }

  handleEmptyQuery(): void {
    this.#answered('', 0);
  }

  #step(): Step {
    return this.#steps[this.#answers.length] ?? noStep;
  }

  #answered(command: string, rowCount: number): void {
    const { name } = this.#step();
    if (name !== '') this.#known.set(name, this.#columns ?? this.#known.get(name) ?? noColumns);
    this.#answers.push({ rows: this.#rows, command, rowCount });
    this.#rows = [];
    this.#columns = undefined;
  }

  handleReadyForQuery(): void {
    this.#end(this.#unreadable);
  }

  handleError(error: Error, connection?: pg.Connection): void {
    // Not an error of the server, so the answers that are still to come on this connection are unknown.
    if (!(error instanceof pg.DatabaseError)) {
      (connection as unknown as Wire | undefined)?.stream.destroy();
    }
    this.#end(error);
  }

  #end(error: Error | undefined): void {
    this.callback(error);
    this.#resolve({ answers: this.#answers, ...(error && { error }) });
    // node-postgres's timer of a query makes V8 keep this object until it marks the whole heap, so it must not
    // refer to the values and rows: they were a sixth of all that a process allocated.
    this.callback = ignored;
    this.#resolve = ignored;
    this.#steps = [];
    this.#answers = [];
  }
}
