/** Approvals with a form: the schema of its fields, and what the person has filled in. Null for an approval without one. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const column of ['fields', 'answer']) {
    await db.schema.alterTable('approvals').addColumn(column, 'text').execute();
  }
}
