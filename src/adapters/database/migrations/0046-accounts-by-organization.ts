/** The accounts of an organization are listed, and the rows are in the order of sources. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createIndex('remote_accounts_by_organization')
    .on('remote_accounts')
    .column('organization_id')
    .execute();
}
