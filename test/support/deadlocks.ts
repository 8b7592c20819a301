import pg from 'pg';

/** Deadlocks that PostgreSQL has had to resolve in a database, as its sessions told when they ended. */
export async function deadlocksIn(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(
    'select deadlocks::int from pg_stat_database where datname = current_database()',
  );
  await client.end();
  return rows[0].deadlocks;
}
