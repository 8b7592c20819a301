/**
 * Orders held jobs by the moment since which they are due, so that a job that replaces another one keeps its rank at a gate,
 * and finds the unended jobs of a key.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const statements = [
    'drop index jobs_held',
    `create index jobs_held on jobs (held_by, organization_id, priority, due_at, id)
      where held_by is not null`,
    `create index jobs_open_of_key on jobs (organization_id, job_key, id)
      where job_key is not null and due_at is not null`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
