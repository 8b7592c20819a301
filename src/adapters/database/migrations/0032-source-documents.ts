/** What describes a service outside, where the operator gave it as a text. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('remote_sources').addColumn('document', 'text').execute();
}
