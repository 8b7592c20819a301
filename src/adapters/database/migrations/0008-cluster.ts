/** What processes that work together have to know: of each other, and of what is to be stopped. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await clusteredIn(dialect)(
    db.schema
      .createTable('processes')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('roles', 'text', (c) => c.notNull())
      .addColumn('version', 'text', (c) => c.notNull())
      .addColumn('skills', 'text', (c) => c.notNull())
      .addColumn('started_at', 'bigint', (c) => c.notNull())
      .addColumn('seen_at', 'bigint', (c) => c.notNull())
      .addColumn('last_claim_at', 'bigint', (c) => c.notNull()),
  ).execute();
  // Few at any moment: each worker reads them, in case a message was lost.
  await sql`create index jobs_cancelling on jobs (id)
    where status = 'active' and cancel_requested_at is not null`.execute(db);
  // Found without walking past whatever else waits: scheduled jobs have a queue of their own.
  await sql`create index jobs_due_scheduled on jobs (due_at)
    where status = 'queued' and trigger_type = 'scheduled'`.execute(db);
  // The longest overdue of all, whichever webhook it is of.
  await sql`create index webhook_deliveries_overdue on webhook_deliveries (due_at)
    where status = 'pending'`.execute(db);
}
