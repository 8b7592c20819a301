/**
 * PostgreSQL through node-postgres, for any number of processes. Every write is a transaction on a
 * connection of the pool; nothing is reported as done before its COMMIT is acknowledged. A lost
 * connection never ends the process: what it hit is answered `service_unavailable`, and the pool
 * connects anew.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import type { Logger } from '../../kernel/log.ts';
import {
  asUnit,
  type Database,
  refuseNesting,
  runHooks,
  type Transaction,
  unavailable,
} from './database.ts';
import { migrate } from './migrate.ts';
import { type Answer, forgetPrepared, runTogether, type Step } from './pipeline.ts';
import {
  inOurTerms,
  isGivenUp,
  isOutage,
  isOutdated,
  isReadOnly,
  translated,
} from './postgres-errors.ts';
import { handleOver, type Runner, Statements } from './postgres-handle.ts';
import { Session } from './postgres-session.ts';
import { toValue } from './postgres-values.ts';
import { adoptRestored } from './restored-database.ts';
import type { Tables } from './tables.ts';

const connectTimeoutMs = 5_000;
/** No statement of the platform runs as long by itself: one that takes longer waits for a lock. */
const usualStatementTimeoutMs = 10_000;
/**
 * Until an answer is there, beyond what the server may take. A network that has forgotten a connection
 * does not say so, and TCP would go on hoping for a quarter of an hour.
 */
const answerMarginMs = 2_000;
/** A process that is suspended in a transaction holds locks that others wait for. */
const idleTimeoutMs = 10_000;
/**
 * A plan is made once and kept, and while a table is small a scan of it looks cheap: every query of
 * ours has an index that serves it. Nor is any of them so long that compiling it would pay.
 */
const plannerSettings = 'set enable_seqscan = off; set jit = off';
/** Times that a transaction is run which PostgreSQL gives up for another one. */
const runsMax = 5;
/** Between two runs, the longer the more there were. */
const pauseMs = 50;

// Every bigint of ours is a moment or a count, far below 2^53.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
// SUM over bigint is numeric.
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);

/** An open database. */
interface Opened {
  readonly pool: pg.Pool;
  readonly statements: Statements;
  /** Under way. */
  readonly writes: Set<Promise<unknown>>;
  isClosing: boolean;
}

/**
 * Connects to `url` and migrates under Kysely's advisory lock, so that processes may start together.
 * No statement takes longer than `statementTimeoutMs`.
 */
export async function openPostgres(
  url: string,
  log: Logger,
  { connectionsMax = 10, statementTimeoutMs = usualStatementTimeoutMs } = {},
): Promise<Database> {
  const pool = openPool(url, log, connectionsMax, statementTimeoutMs);
  const kysely = kyselyOver(async () => await pool.connect());
  let statements: Statements;
  try {
    await migrate(kysely, 'postgres', log, (work) => patiently(url, work));
    if (await adoptRestored(kysely, (work) => patiently(url, work))) {
      log.info('the database was restored from another server: its events are numbered anew');
    }
    statements = new Statements(kysely, await columnTypes(kysely));
  } catch (error) {
    await pool.end();
    throw error;
  }
  const opened: Opened = { pool, statements, writes: new Set(), isClosing: false };
  const reader: Runner = {
    run: (steps) => read(pool, steps),
    async runLater(steps) {
      await read(pool, steps);
    },
  };
  return {
    read: handleOver(reader, () => kysely, statements),
    write: (run) => write(opened, run),
    async ping() {
      await translated(pool.query('SELECT 1'));
    },
    emptyLog: async () => true,
    connections: () => ({ active: pool.totalCount - pool.idleCount, idle: pool.idleCount }),
    async close() {
      opened.isClosing = true;
      await Promise.allSettled(opened.writes);
      await pool.end();
    },
  };
}

function openPool(
  url: string,
  log: Logger,
  connectionsMax: number,
  statementTimeoutMs: number,
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: connectionsMax,
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: idleTimeoutMs,
    query_timeout: statementTimeoutMs + answerMarginMs,
    keepAlive: true,
    application_name: 'skillwright',
    async onConnect(client) {
      await client.query(plannerSettings);
    },
  });
  // Without a listener an idle connection that breaks would end the process.
  pool.on('error', ({ message }) =>
    log.warn({ reason: message }, 'a PostgreSQL connection was lost'),
  );
  // Nor does the pool listen while a connection is lent: there the next query tells.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

async function write<T>(opened: Opened, run: (tx: Transaction) => Promise<T>): Promise<T> {
  refuseNesting();
  if (opened.isClosing) throw unavailable();
  const writing = transact(opened, run);
  opened.writes.add(writing);
  try {
    return await writing;
  } finally {
    opened.writes.delete(writing);
  }
}

async function transact<T>(opened: Opened, run: (tx: Transaction) => Promise<T>): Promise<T> {
  for (let runs = 1; ; runs++) {
    try {
      return await transactOnce(opened, run);
    } catch (error) {
      if (!isGivenUp(error) || runs === runsMax) throw error;
      // At once, it would take what the other one is only being woken for.
      await elapsed(runs * pauseMs * (1 + Math.random()));
    }
  }
}

async function transactOnce<T>(
  { pool, statements }: Opened,
  run: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const client = await translated(pool.connect());
  const session = new Session(client);
  const hooks: (() => void)[] = [];
  const uncertainHooks: (() => void)[] = [];
  const failed: (() => void)[] = [];
  let broken: Error | undefined;
  try {
    const kysely = () => kyselyOver(async () => borrowed(session));
    const handle = handleOver(session, kysely, statements);
    const tx = Object.assign(handle, {
      afterCommit: (hook: () => void) => void hooks.push(hook),
      ifUncertain: (hook: () => void) => void uncertainHooks.push(hook),
      ifNotCommitted: (hook: () => void) => void failed.push(hook),
    });
    const value = await asUnit(() => run(tx));
    await commit(session, uncertainHooks);
    runHooks(hooks);
    return value;
  } catch (error) {
    runHooks(failed);
    if (isOutdated(error)) forgetPrepared(client);
    // A connection that cannot roll back is not returned to the pool.
    await session.rollBack().catch((cause: Error) => {
      broken = cause;
    });
    // The server may have been demoted, and then it stays so for as long as this connection lives.
    if (isReadOnly(error)) broken ??= error as Error;
    throw error;
  } finally {
    client.release(broken);
  }
}

async function commit(session: Session, uncertainHooks: readonly (() => void)[]): Promise<void> {
  try {
    await session.commit();
  } catch (error) {
    if (isOutage(error)) runHooks(uncertainHooks);
    throw inOurTerms(error);
  }
}

async function read(pool: pg.Pool, steps: readonly Step[]): Promise<Answer[]> {
  for (let runs = 1; ; runs++) {
    try {
      return await readOnce(pool, steps);
    } catch (error) {
      if (!isOutdated(error) || runs === runsMax) throw error;
    }
  }
}

async function readOnce(pool: pg.Pool, steps: readonly Step[]): Promise<Answer[]> {
  const client = await translated(pool.connect());
  const { answers, error } = await runTogether(client, steps);
  if (isOutdated(error)) forgetPrepared(client);
  client.release(error !== undefined && isOutage(error) ? error : undefined);
  if (error !== undefined) throw inOurTerms(error);
  return [...answers];
}

/**
 * Work that may take longer than a statement may, and wait longer for another process that does the
 * same: on connections of its own.
 */
async function patiently<T>(url: string, work: (kysely: Kysely<Tables>) => Promise<T>): Promise<T> {
  const pool = new pg.Pool({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    application_name: 'skillwright start',
  });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  try {
    return await work(kyselyOver(async () => await pool.connect()));
  } finally {
    await pool.end();
  }
}

type Borrowed = Pick<pg.PoolClient, 'query' | 'release'>;

/** The type of each column of each table, as the database calls it. */
async function columnTypes(
  kysely: Kysely<Tables>,
): Promise<(table: string, column: string) => string> {
  const { rows } = await sql<{ table: string; column: string; type: string }>`
    select relname as table, attname as column, format_type(atttypid, atttypmod) as type
    from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
      and attnum > 0 and not attisdropped`.execute(kysely);
  const types = new Map(rows.map(({ table, column, type }) => [`${table}.${column}`, type]));
  return (table, column) => {
    const type = types.get(`${table}.${column}`);
    if (type === undefined) throw new Error(`There is no column ${column} in the table ${table}.`);
    return type;
  };
}

/** A Kysely that takes its connections from `connect`, with errors in the platform's terms. */
function kyselyOver(connect: () => Promise<Borrowed>): Kysely<Tables> {
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
                isDoubtful ||= isOutage(error);
                throw inOurTerms(error);
              }
            },
            // A connection that gave no answer would not answer its next user either.
            release: (destroy?: boolean) => client.release(destroy || isDoubtful),
          } as never;
        },
      },
    }),
  });
}

/** A transaction, lent to Kysely as a connection: giving it back does nothing. */
function borrowed(session: Session): Borrowed {
  const query = (text: string, values: readonly unknown[]) =>
    session.runOne({ name: '', text, values: values.map(toValue), givesRows: true });
  return { query: query as never, release() {} };
}
