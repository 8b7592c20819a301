/**
 * PostgreSQL through node-postgres, for any number of processes. Every write is a transaction on a
 * connection of the pool; nothing is reported as done before its COMMIT is acknowledged. A lost
 * connection never ends the process: what it hit is answered `service_unavailable`, and the pool
 * connects anew.
 */
import { type Insertable, Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { PlatformError } from '../kernel/errors.ts';
import type { Logger } from '../kernel/log.ts';
import {
  asUnit,
  type Database,
  type Handle,
  refuseNesting,
  runAfterCommit,
  type Transaction,
} from './database.ts';
import { migrate } from './migrate.ts';
import { adoptRestored } from './restored.ts';
import { type CompiledStatement, compile, type Statement } from './statement.ts';
import type { Tables } from './tables.ts';

const connectTimeoutMs = 5_000;
/** No statement of the platform takes as long by itself: what waits longer waits for somebody else. */
const usualStatementTimeoutMs = 10_000;
/**
 * Until an answer is there, beyond what the server may take. A network that has forgotten a connection
 * does not say so, and TCP would go on hoping for a quarter of an hour.
 */
const answerMarginMs = 2_000;
/** A process that stands still in a transaction holds rows that others wait for. */
const idleTimeoutMs = 10_000;
/** For a connection that has failed to show that it is still good. */
const rollbackTimeoutMs = 1_000;
/** Values in one statement; the protocol counts them in 16 bits. */
const valuesMax = 65_535;
/** Times that a transaction is run which PostgreSQL gives up for another one. */
const runsMax = 5;

// Every bigint of ours is a moment or a count, far below 2^53.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
// SUM over bigint is numeric.
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);

/**
 * Connects to `url` and migrates under Kysely's advisory lock, so that processes may start together.
 * No statement takes longer than `statementTimeoutMs`.
 */
export async function openPostgres(
  url: string,
  log: Logger,
  { connectionsMax = 10, statementTimeoutMs = usualStatementTimeoutMs } = {},
): Promise<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    max: connectionsMax,
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: idleTimeoutMs,
    query_timeout: statementTimeoutMs + answerMarginMs,
    keepAlive: true,
    application_name: 'skillwright',
  });
  // Without a listener an idle connection that breaks would end the process.
  pool.on('error', (error) => log.warn({ err: error }, 'a PostgreSQL connection was lost'));
  // Nor does the pool listen while a connection is lent: there the next query tells.
  pool.on('connect', (client) => client.on('error', () => {}));

  const kysely = kyselyOver(async () => await pool.connect());
  const compiled = compiledStatements(kysely);
  try {
    await prepare(url, log);
  } catch (error) {
    await pool.end();
    throw error;
  }

  async function transact<T>(run: (tx: Transaction) => Promise<T>): Promise<T> {
    for (let runs = 1; ; runs++) {
      try {
        return await transactOnce(run);
      } catch (error) {
        if (!isGivenUp(error) || runs === runsMax) throw error;
      }
    }
  }

  async function transactOnce<T>(run: (tx: Transaction) => Promise<T>): Promise<T> {
    const client = await translated(pool.connect());
    const hooks: (() => void)[] = [];
    let broken: Error | undefined;
    try {
      const handle = handleOver(
        client,
        kyselyOver(async () => borrowed(client)),
        compiled,
      );
      await translated(client.query('BEGIN'));
      const value = await asUnit(() =>
        run({ ...handle, afterCommit: (hook) => void hooks.push(hook) }),
      );
      await translated(client.query('COMMIT'));
      runAfterCommit(hooks);
      return value;
    } catch (error) {
      // A connection that cannot even roll back is not given to anybody else.
      await client.query(rollback).catch((cause: Error) => {
        broken = cause;
      });
      throw error;
    } finally {
      client.release(broken);
    }
  }

  const writes = new Set<Promise<unknown>>();
  let closing = false;
  return {
    read: handleOver(pool, kysely, compiled),
    async write<T>(run: (tx: Transaction) => Promise<T>): Promise<T> {
      refuseNesting();
      if (closing) throw unavailable();
      const write = transact(run);
      writes.add(write);
      try {
        return await write;
      } finally {
        writes.delete(write);
      }
    },
    async ping() {
      await translated(pool.query('SELECT 1'));
    },
    connections: () => ({ active: pool.totalCount - pool.idleCount, idle: pool.idleCount }),
    async close() {
      closing = true;
      await Promise.allSettled(writes);
      await pool.end();
    },
  };
}

const rollback = { text: 'ROLLBACK', query_timeout: rollbackTimeoutMs };

/**
 * Brings the database up to date, on connections of its own: that may take longer than a statement may,
 * and wait longer for another process that does the same.
 */
async function prepare(url: string, log: Logger): Promise<void> {
  const pool = new pg.Pool({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    application_name: 'skillwright start',
  });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  const kysely = kyselyOver(async () => await pool.connect());
  try {
    await migrate(kysely, 'postgres');
    if (await adoptRestored(kysely)) {
      log.info('the database was restored from another server: its events are numbered anew');
    }
  } finally {
    await pool.end();
  }
}

type Queryable = Pick<pg.PoolClient, 'query'>;
type Connection = Pick<pg.PoolClient, 'query' | 'release'>;

interface NamedStatement extends CompiledStatement {
  readonly name: string;
}

/** Compiles each statement once and names it, so that the server keeps its plan. */
function compiledStatements(kysely: Kysely<Tables>) {
  const known = new Map<object, NamedStatement>();
  return <P, R>(source: Statement<P, R>): NamedStatement => {
    let found = known.get(source);
    if (found === undefined) {
      found = { ...compile(kysely, source, 'postgres'), name: `s${known.size}` };
      known.set(source, found);
    }
    return found;
  };
}

function handleOver(
  on: Queryable,
  kysely: Kysely<Tables>,
  compiled: ReturnType<typeof compiledStatements>,
): Handle {
  function query<P, R>(source: Statement<P, R>, params: P): Promise<pg.QueryResult> {
    const { name, text, bind } = compiled(source);
    return translated(on.query({ name, text, values: bind(params) }));
  }
  async function all<P, R>(source: Statement<P, R>, params: P): Promise<R[]> {
    return (await query(source, params)).rows as R[];
  }
  return {
    dialect: 'postgres',
    kysely,
    all,
    async first<P, R>(source: Statement<P, R>, params: P) {
      const [row] = await all(source, params);
      return row;
    },
    async each<P>(source: Statement<P, unknown>, params: readonly P[]) {
      const changes: number[] = [];
      for (const one of params) changes.push((await query(source, one)).rowCount ?? 0);
      return changes;
    },
    async insert<T extends keyof Tables>(table: T, rows: readonly Insertable<Tables[T]>[]) {
      const [row] = rows;
      if (row === undefined) return;
      const rowsMax = Math.floor(valuesMax / Object.keys(row).length);
      for (let from = 0; from < rows.length; from += rowsMax) {
        const some = rows.slice(from, from + rowsMax);
        await translated(kysely.insertInto(table).values(some).execute());
      }
    },
  };
}

/** A Kysely that takes its connections from `connect`, with errors in the platform's terms. */
function kyselyOver(connect: () => Promise<Connection>): Kysely<Tables> {
  return new Kysely<Tables>({
    dialect: new PostgresDialect({
      pool: {
        options: {},
        async end() {},
        async connect() {
          const client = await translated(connect());
          let isDoubtful = false;
          return {
            async query(...args: unknown[]) {
              try {
                return await client.query(...(args as Parameters<pg.PoolClient['query']>));
              } catch (error) {
                isDoubtful ||= isUnavailable(error);
                throw translatedError(error);
              }
            },
            // One that gave no answer would give none to the next who gets it either.
            release: (destroy?: boolean) => client.release(destroy || isDoubtful),
          } as never;
        },
      },
    }),
  });
}

/** The connection of a transaction, lent to Kysely: giving it back does nothing. */
function borrowed(client: pg.PoolClient): Connection {
  return { query: client.query.bind(client), release() {} };
}

async function translated<T>(query: Promise<T>): Promise<T> {
  try {
    return await query;
  } catch (error) {
    throw translatedError(error);
  }
}

function translatedError(error: unknown): unknown {
  return isUnavailable(error) ? unavailable(error) : error;
}

function unavailable(cause?: unknown): PlatformError {
  return new PlatformError('service_unavailable', 'The database cannot be used right now', {
    retryAfter: 5,
    cause,
  });
}

/**
 * SQLSTATE classes 08 (connection), 53 (resources), 57 (operator intervention), 25006 (read only),
 * and what has no SQLSTATE at all: sockets that broke, a pool that timed out.
 */
function isUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  if (typeof code !== 'string') return error instanceof Error && !(error instanceof TypeError);
  return /^(08|53|57)/.test(code) || code === '25006' || /^E[A-Z]+$/.test(code);
}

/** Whether the transaction was rolled back only because it stood in the way of another one. */
function isGivenUp(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '40P01' || code === '40001';
}
