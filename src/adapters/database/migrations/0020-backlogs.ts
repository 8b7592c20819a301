/** The events of one organization in their order, for those that webhooks have not heard of in time. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const columns =
    dialect === 'sqlite' ? sql`organization_id, seq` : sql`organization_id, txid, seq`;
  await sql`create index events_of_organization on events (${columns})`.execute(db);
}
