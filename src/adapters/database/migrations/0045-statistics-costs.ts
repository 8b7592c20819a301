/** What the calls of models in a stretch of time cost, and how many of them are missing from the sums. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const column of ['cost', 'unreported_calls', 'unpriced_calls']) {
    await db.schema
      .alterTable('run_statistics')
      .addColumn(column, 'bigint', (c) => c.notNull().defaultTo(0))
      .execute();
  }
}
