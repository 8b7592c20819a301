/** Adds the priority of the jobs that an agent, a scheduled job or a trigger starts; null for none of their own. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of ['agents', 'scheduled_jobs', 'agent_triggers']) {
    await sql`alter table ${sql.ref(table)} add column priority text`.execute(db);
  }
}
