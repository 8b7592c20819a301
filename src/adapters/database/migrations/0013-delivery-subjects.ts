/**
 * What a delivery's event tells of, so that the deliveries of a job are found without reading bodies.
 * Deliveries that were made before have none.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('webhook_deliveries').addColumn('subject', 'text').execute();
  await sql`create index webhook_deliveries_of_subject on webhook_deliveries (subject, id)
    where subject is not null`.execute(db);
}
