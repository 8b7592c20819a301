/**
 * Orders the indexes of turns by priority before key, so that a job waits for none of a lower priority, however many keys its
 * organization has. The names stay: earlier versions on SQLite name them in their statements. With this order their claims
 * get the same jobs and read all that wait of an organization.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [name, queue] of [
    ['jobs_turns', sql`trigger_type <> 'scheduled'`],
    ['jobs_turns_scheduled', sql`trigger_type = 'scheduled'`],
  ] as const) {
    await sql`drop index ${sql.ref(name)}`.execute(db);
    await sql`create index ${sql.ref(name)} on jobs
      (organization_id, priority, api_key_id, due_at, id)
      where status in ('queued', 'waiting') and held_by is null and ${queue}`.execute(db);
  }
}
