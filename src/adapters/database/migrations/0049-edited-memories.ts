/** Whether a client has rewritten what a run remembered. Before, that could not be told from what the run had written. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('memories')
    .addColumn('edited', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
}
