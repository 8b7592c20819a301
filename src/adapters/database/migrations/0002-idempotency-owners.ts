/** Triggers take idempotency keys too, so the owner of one need not be an API key. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('idempotency_keys').renameColumn('api_key_id', 'owner').execute();
}
