/** What decides whether a claim that ended by itself used up an attempt: who made it, whether its code began, what it recorded. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const column of ['claimed_by', 'begun', 'attempts_before', 'idle_claims']) {
    await db.schema
      .alterTable('jobs')
      .addColumn(column, 'integer', (c) => c.notNull().defaultTo(0))
      .execute();
  }
}
