/**
 * Adds the priority of a job (0 high, 1 normal, 2 low), and for each queue of jobs an index in the order of their turns. Earlier
 * versions insert jobs of normal priority.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table jobs add column priority integer default 1 not null`.execute(db);
  for (const [name, queue] of [
    ['jobs_turns', sql`trigger_type <> 'scheduled'`],
    ['jobs_turns_scheduled', sql`trigger_type = 'scheduled'`],
  ] as const) {
    await sql`create index ${sql.ref(name)} on jobs
      (organization_id, api_key_id, priority, due_at, id)
      where status in ('queued', 'waiting') and ${queue}`.execute(db);
  }
}
