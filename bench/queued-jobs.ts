/**
 * Fills a cluster's PostgreSQL with queued jobs, far faster than accepting them. One job that the
 * product really accepted is the pattern: every row that mentions it, in whatever table, is copied
 * with new ids and earlier times, so the seed follows the schema by itself. Only the tables of
 * counts are known by their shape.
 */
import pg from 'pg';

/** A job that is queued, by its ids. */
interface Names {
  readonly jobId: string;
  readonly conversationId: string;
}

/** The job that is copied, as it was before any worker claimed it. */
export interface Pattern extends Names {
  /** All rows that mention it. */
  readonly rows: readonly {
    readonly table: string;
    readonly columns: readonly Column[];
    readonly values: Readonly<Record<string, unknown>>;
  }[];
}

interface Column {
  readonly name: string;
  readonly type: string;
}

const daysOfHistory = 10;
const copiesPerStatement = 50_000;

/** Reads a job that is to be copied, before any worker is there. */
export async function readPattern(url: string, job: Names): Promise<Pattern> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ name: string; columns: Column[] }>(`
      SELECT table_name AS name,
        json_agg(json_build_object('name', column_name, 'type', data_type)
          ORDER BY ordinal_position)
          -- What the database gives out itself is left to it.
          FILTER (WHERE is_generated = 'NEVER'
            AND (column_default IS NULL OR column_default !~ '(nextval|xact_id)')) AS columns
      FROM information_schema.columns WHERE table_schema = 'public' GROUP BY table_name`);
    const found: Pattern['rows'][number][] = [];
    for (const { name, columns } of tables) {
      const { rows } = await client.query<Record<string, unknown>>(
        `SELECT * FROM "${name}" AS t WHERE t::text LIKE '%' || $1 || '%' OR t::text LIKE '%' || $2 || '%'`,
        [job.jobId, job.conversationId],
      );
      found.push(...rows.map((values) => ({ table: name, columns, values })));
    }
    return { ...job, rows: found };
  } finally {
    await client.end();
  }
}

/** Adds `count` copies of the job, which have waited for up to ten days. */
export async function queueJobs(url: string, pattern: Pattern, count: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('SET synchronous_commit = off');
    await client.query(`
      CREATE FUNCTION pg_temp.id_at(ms bigint) RETURNS text LANGUAGE sql VOLATILE AS $$
        SELECT substr(t, 1, 8) || '-' || substr(t, 9) || '-7' || substr(r, 1, 3)
          || '-a' || substr(r, 4, 3) || '-' || substr(r, 7, 12)
        FROM (SELECT lpad(to_hex(ms), 12, '0') AS t, replace(gen_random_uuid()::text, '-', '') AS r) AS _
      $$;
      CREATE TEMP TABLE copies (ago_ms bigint, job_id text, conversation_id text)`);
    const copiers = copiersFor(pattern);
    const stepMs = (daysOfHistory * 24 * 3600 * 1000) / count;
    for (let left = count; left > 0; left -= copiesPerStatement) {
      await client.query('TRUNCATE copies');
      await client.query(
        `INSERT INTO copies SELECT ago, pg_temp.id_at($4::bigint - ago), pg_temp.id_at($4::bigint - ago)
         FROM (SELECT ((i + 1) * $3::float8)::bigint AS ago FROM generate_series($1::int, $2::int, -1) AS i) AS _`,
        [left - 1, Math.max(0, left - copiesPerStatement), stepMs, Date.now()],
      );
      for (const copy of copiers) await client.query(copy);
    }
    await addCount(client, 'job_counts', 'queued', count);
    await addCount(client, 'conversation_counts', 'active', count);
    // As autovacuum leaves tables that were filled over days.
    await client.query('VACUUM (ANALYZE)');
    await client.query('CHECKPOINT');
  } finally {
    await client.end();
  }
}

async function addCount(
  client: pg.Client,
  table: string,
  status: string,
  count: number,
): Promise<void> {
  const { rowCount } = await client.query(
    `UPDATE ${table} SET count = count + $1
     WHERE ctid = (SELECT ctid FROM ${table} WHERE status = $2 AND count > 0 LIMIT 1)`,
    [count, status],
  );
  if (rowCount !== 1) throw new Error(`${table}: no row counts the job that is copied.`);
}

/** For each row of the pattern the statement that copies it. */
function copiersFor(pattern: Pattern): string[] {
  return pattern.rows.map(({ table, columns, values }) => {
    const names = columns.map(({ name }) => `"${name}"`).join(', ');
    const copied = columns.map((column) => valueFor(column, values[column.name] ?? null, pattern));
    return `INSERT INTO "${table}" (${names}) SELECT ${copied.join(', ')} FROM copies`;
  });
}

function valueFor({ name, type }: Column, value: unknown, pattern: Names): string {
  if (value === null) return 'NULL';
  const text = String(value);
  if (text === pattern.jobId) return 'job_id';
  if (text === pattern.conversationId) return 'conversation_id';
  const literal = `${pg.escapeLiteral(text)}::${type}`;
  if (name.endsWith('_at') && type === 'bigint') return `${literal} - ago_ms`;
  if (name === 'id') return `pg_temp.id_at(${Date.now()} - ago_ms)`;
  if (text.includes(pattern.jobId) || text.includes(pattern.conversationId)) {
    const replaced = `replace(${literal}, '${pattern.jobId}', job_id)`;
    return `replace(${replaced}, '${pattern.conversationId}', conversation_id)`;
  }
  return literal;
}
