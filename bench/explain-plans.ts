/**
 * What PostgreSQL has really done for the program: `auto_explain` writes each statement of the
 * program's own sessions, prepared ones with the plan that was kept for them, into the server's log.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import pg from 'pg';

/** A statement that was run. */
export interface Executed {
  readonly text: string;
  readonly ms: number;
  readonly plan: PlanNode;
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Shared Hit Blocks'?: number;
  readonly 'Shared Read Blocks'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** A scan of a table in a plan. */
export interface Scan {
  readonly node: string;
  readonly table: string;
  readonly index: string | undefined;
  /** Rows looked at, those that a filter refused among them. */
  readonly rows: number;
}

/** From now on the sessions that are opened to a database are explained. */
export async function explainSessions(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const settings = {
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_analyze': 'on',
    'auto_explain.log_buffers': 'on',
    // The clock of each node costs more than many of them.
    'auto_explain.log_timing': 'off',
    'auto_explain.log_nested_statements': 'on',
    'auto_explain.log_format': 'json',
  };
  await client.query("load 'auto_explain'");
  const name = new URL(url).pathname.slice(1);
  for (const [key, value] of Object.entries(settings)) {
    await client.query(`alter database "${name}" set ${key} = '${value}'`);
  }
  await client.end();
}

/** Reads what a server has logged since it was last asked. */
export function followLog(path: string): () => Executed[] {
  let place = 0;
  return () => {
    const file = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(fstatSync(file).size - place);
      readSync(file, bytes, 0, bytes.length, place);
      place += bytes.length;
      return executedIn(bytes.toString());
    } finally {
      closeSync(file);
    }
  };
}

function executedIn(log: string): Executed[] {
  const entries = log.matchAll(/LOG: {2}duration: ([\d.]+) ms {2}plan:\n((?:\t.*\n)+)/g);
  return [...entries].map(([, ms = '', json = '']) => {
    const entry = JSON.parse(json) as { 'Query Text': string; Plan: PlanNode };
    return { text: entry['Query Text'], ms: Number(ms), plan: entry.Plan };
  });
}

/** Every scan of a table in a plan. */
export function scansOf(plan: PlanNode): Scan[] {
  const within = (plan.Plans ?? []).flatMap(scansOf);
  const table = plan['Relation Name'];
  const node = plan['Node Type'];
  if (table === undefined || !node.includes('Scan')) return within;
  const seen =
    (plan['Actual Rows'] ?? 0) +
    (plan['Rows Removed by Filter'] ?? 0) +
    (plan['Rows Removed by Index Recheck'] ?? 0);
  // A bitmap's index is a node of its own.
  const index = plan['Index Name'] ?? bitmapIndexes(plan).join(' and ');
  const own = { node, table, index, rows: seen * (plan['Actual Loops'] ?? 1) };
  return [own, ...within];
}

function bitmapIndexes(plan: PlanNode): string[] {
  return (plan.Plans ?? []).flatMap((child) =>
    child['Node Type'] === 'Bitmap Index Scan'
      ? [child['Index Name'] ?? '']
      : child['Node Type'].startsWith('Bitmap')
        ? bitmapIndexes(child)
        : [],
  );
}

/** Pages that a plan looked at, in memory or not. */
export function pagesOf(plan: PlanNode): number {
  return (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0);
}
