/** The time zone of a scheduled job; null for UTC. `cron_key`, which is unique, has it as well. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('scheduled_jobs').addColumn('timezone', 'text').execute();
}
