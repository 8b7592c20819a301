/** Columns for charging attempts: the process of a claim, whether its code began, attempts and claims without a new turn. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const column of ['claimed_by', 'begun', 'attempts_before', 'idle_claims']) {
    await db.schema
      .alterTable('jobs')
      .addColumn(column, 'integer', (c) => c.notNull().defaultTo(0))
      .execute();
  }
}
