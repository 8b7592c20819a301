/** Within which step a step was taken: a tool's model, or the tool that asked a model of its own. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('job_steps').addColumn('parent', 'integer').execute();
}
