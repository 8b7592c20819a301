/**
 * Fills a stopped server's SQLite database with completed or waiting jobs, far faster than running them. One
 * job that the server really ran is the pattern: every row that mentions it, in whatever table, is
 * copied with new ids and earlier times, so the seed follows the schema by itself. Only the tables
 * of counts are known by their shape.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';

type Row = Readonly<Record<string, SQLInputValue>>;

/** What one copy puts in the place of what the pattern has. */
interface Copy {
  readonly jobId: string;
  readonly conversationId: string;
  readonly agoMs: number;
  /** A new id, in the order of time. */
  newId(): string;
}

interface Copier {
  readonly statement: StatementSync;
  readonly values: readonly ((copy: Copy) => SQLInputValue)[];
}

const daysOfHistory = 10;
const jobsPerTransaction = 10_000;

/** Adds `count` copies of the job, and of its conversation in these states, to the database in `dataDir`. */
export function storeJobs(
  dataDir: string,
  pattern: { jobId: string; conversationId: string },
  count: number,
  states = { job: 'completed', conversation: 'completed' },
): void {
  const database = new DatabaseSync(join(dataDir, 'skillwright.db'));
  database.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;');
  const tables = tableNames(database);
  const copiers = tables.flatMap((table) => copiersFor(database, table, pattern));
  const now = Date.now();
  const stepMs = (daysOfHistory * 24 * 3600 * 1000) / count;
  for (let done = 0; done < count; ) {
    database.exec('BEGIN');
    for (const end = Math.min(count, done + jobsPerTransaction); done < end; done += 1) {
      const copy = newCopy(now, Math.round((count - done) * stepMs));
      for (const { statement, values } of copiers) {
        statement.run(...values.map((make) => make(copy)));
      }
    }
    database.exec('COMMIT');
  }
  for (const [table, status] of [
    ['job_counts', states.job],
    ['conversation_counts', states.conversation],
  ] as const) {
    const add = `UPDATE ${table} SET count = count + ? WHERE status = ? AND count > 0`;
    if (database.prepare(add).run(count, status).changes !== 1) {
      throw new Error(`${table}: not one row counts the job that was copied.`);
    }
  }
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}

function tableNames(database: DatabaseSync): string[] {
  return database
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all()
    .map((row) => String(row['name']));
}

/** One copier for each row of the table that mentions the job or its conversation. */
function copiersFor(
  database: DatabaseSync,
  table: string,
  pattern: { jobId: string; conversationId: string },
): Copier[] {
  const columns = database
    .prepare(`SELECT name, type, pk FROM pragma_table_info('${table}')`)
    .all()
    // A number that the database gives out itself.
    .filter((column) => !(column['pk'] === 1 && column['type'] === 'INTEGER'))
    .map((column) => String(column['name']));
  const names = columns.map((name) => `"${name}"`).join(', ');
  const mentions = columns
    .map((name) => `instr("${name}", :job) OR instr("${name}", :conversation)`)
    .join(' OR ');
  const rows = database
    .prepare(`SELECT ${names} FROM "${table}" WHERE ${mentions}`)
    .all({ job: pattern.jobId, conversation: pattern.conversationId }) as Row[];
  const marks = columns.map(() => '?').join(', ');
  return rows.map((row) => ({
    statement: database.prepare(`INSERT INTO "${table}" (${names}) VALUES (${marks})`),
    values: columns.map((name) => valueFor(name, row[name] ?? null, pattern)),
  }));
}

function valueFor(
  column: string,
  value: SQLInputValue,
  pattern: { jobId: string; conversationId: string },
): (copy: Copy) => SQLInputValue {
  if (value === pattern.jobId) return (copy) => copy.jobId;
  if (value === pattern.conversationId) return (copy) => copy.conversationId;
  if (column === 'id') return (copy) => copy.newId();
  if (typeof value === 'number' && column.endsWith('_at')) return (copy) => value - copy.agoMs;
  if (
    typeof value === 'string' &&
    (value.includes(pattern.jobId) || value.includes(pattern.conversationId))
  ) {
    return (copy) =>
      value
        .replaceAll(pattern.jobId, copy.jobId)
        .replaceAll(pattern.conversationId, copy.conversationId);
  }
  return () => value;
}

function newCopy(now: number, agoMs: number): Copy {
  const newId = () => uuidAt(now - agoMs);
  return { jobId: newId(), conversationId: newId(), agoMs, newId };
}

let sequence = 0;

/** A version 7 UUID of that moment; several of one moment ascend. */
function uuidAt(ms: number): string {
  sequence = (sequence + 1) % 0x1000;
  const time = ms.toString(16).padStart(12, '0');
  const order = sequence.toString(16).padStart(3, '0');
  const random = randomBytes(8).toString('hex');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${order}-a${random.slice(1, 4)}-${random.slice(4)}`;
}
