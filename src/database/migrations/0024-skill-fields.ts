/** Which fields of a skill's input and output hold its task and its answer; null for none. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const column of ['task_field', 'answer_field']) {
    await db.schema.alterTable('skills').addColumn(column, 'text').execute();
  }
}
