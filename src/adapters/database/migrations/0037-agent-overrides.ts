/** The fields of its agent that a job has instead of the saved ones, as JSON; null for the agent as it is. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('jobs').addColumn('agent_overrides', 'text').execute();
}
