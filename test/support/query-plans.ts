/** What the databases read for a query. */
import { CompiledQuery, type KyselyPlugin, type QueryId } from 'kysely';
import { type Executed, scansOf } from '../../bench/explain-plans.ts';
import type { Database, Handle } from '../../src/adapters/database/database.ts';

/** Reads, and what was asked meanwhile. */
export function recording({ read }: Database): { handle: Handle; asked: CompiledQuery[] } {
  const asked: CompiledQuery[] = [];
  // A query that is part of another is made, but has no result.
  const made = new Map<QueryId, CompiledQuery>();
  const plugin: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      made.set(queryId, read.kysely.getExecutor().compileQuery(node, queryId));
      return node;
    },
    async transformResult({ result, queryId }) {
      const query = made.get(queryId);
      if (query === undefined) throw new Error('A result of a query that was not made.');
      asked.push(query);
      return result;
    },
  };
  return { handle: { ...read, kysely: read.kysely.withPlugin(plugin) }, asked };
}

const explained = (query: CompiledQuery, how: string) =>
  CompiledQuery.raw(`${how} ${query.sql}`, [...query.parameters]);

/** How SQLite reads a table, or one under this alias, for a query. */
export async function plansOf(
  { read }: Database,
  table: string,
  query: CompiledQuery,
): Promise<string[]> {
  const { rows } = await read.kysely.executeQuery<{ detail: string }>(
    explained(query, 'explain query plan'),
  );
  return rows.map(({ detail }) => detail).filter((detail) => detail.split(' ').includes(table));
}

/** Rows that PostgreSQL looks at for a query. */
export async function rowsOf({ read }: Database, query: CompiledQuery): Promise<number> {
  const { rows } = await read.kysely.executeQuery<{
    'QUERY PLAN': { Plan: Executed['plan'] }[];
  }>(explained(query, 'explain (analyze, format json)'));
  const plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
  if (plan === undefined) throw new Error(`No plan of ${query.sql}`);
  return scansOf(plan).reduce((sum, scan) => sum + scan.rows, 0);
}
