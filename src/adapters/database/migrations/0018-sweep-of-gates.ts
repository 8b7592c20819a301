/**
 * Adds what the sweep of gates reads: calls that wait, by time, and jobs with a gate that have begun or ended, which only processes
 * of an earlier version leave.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const statements = [
    'create index places_waiting on places (since) where is_held = 0',
    `create index jobs_held_begun on jobs (id)
      where held_by is not null and status not in ('queued', 'waiting')`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
