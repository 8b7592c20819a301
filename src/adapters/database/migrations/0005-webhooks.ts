/** Outgoing webhooks, their deliveries and attempts, and the cursor by which they read the outbox. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const moment = 'bigint';
  const clustered = clusteredIn(dialect);

  await clustered(
    db.schema
      .createTable('event_cursors')
      .addColumn('name', 'text', (c) => c.primaryKey().notNull())
      .addColumn('txid', 'text', (c) => c.notNull())
      .addColumn('seq', 'bigint', (c) => c.notNull()),
  ).execute();
  if (dialect === 'postgres') {
    // A sequence is drawn from before the commit, so it alone does not tell what is new.
    await sql`alter table events add column txid xid8 not null default pg_current_xact_id()`.execute(
      db,
    );
    await sql`create index events_in_order on events (txid, seq)`.execute(db);
  }

  await clustered(
    db.schema
      .createTable('webhooks')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('agent_id', 'text', (c) => c.notNull())
      .addColumn('url', 'text', (c) => c.notNull())
      .addColumn('host', 'text', (c) => c.notNull())
      .addColumn('events', 'text', (c) => c.notNull())
      .addColumn('secret', 'text', (c) => c.notNull())
      .addColumn('active', 'integer', (c) => c.notNull())
      .addColumn('failing', 'integer', (c) => c.notNull())
      .addColumn('consecutive_failures', 'integer', (c) => c.notNull())
      .addColumn('active_since', 'text', (c) => c.notNull())
      .addColumn('removed', 'integer', (c) => c.notNull())
      .addColumn('last_delivery_at', moment)
      .addColumn('created_at', moment, (c) => c.notNull())
      .addColumn('updated_at', moment, (c) => c.notNull()),
  ).execute();
  await sql`create index webhooks_newest on webhooks (organization_id, id)`.execute(db);
  await sql`create index webhooks_active on webhooks (organization_id, agent_id) where active = 1`.execute(
    db,
  );

  await sql`create index webhooks_removed on webhooks (id) where removed = 1`.execute(db);

  await clustered(
    db.schema
      .createTable('webhook_deliveries')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('webhook_id', 'text', (c) => c.notNull())
      .addColumn('event_id', 'text', (c) => c.notNull())
      .addColumn('event', 'text', (c) => c.notNull())
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('attempts', 'integer', (c) => c.notNull())
      .addColumn('lost', 'integer', (c) => c.notNull())
      .addColumn('epoch', 'integer', (c) => c.notNull())
      .addColumn('due_at', moment)
      .addColumn('started_at', moment)
      .addColumn('is_test', 'integer', (c) => c.notNull())
      .addColumn('redelivery_of', 'text')
      .addColumn('created_at', moment, (c) => c.notNull())
      .addColumn('finished_at', moment)
      .addColumn('body', 'text', (c) => c.notNull()),
  ).execute();
  // One delivery for each webhook and event, beside the requested redeliveries.
  await sql`create unique index webhook_deliveries_once on webhook_deliveries (webhook_id, event_id) where redelivery_of is null`.execute(
    db,
  );
  await sql`create index webhook_deliveries_newest on webhook_deliveries (webhook_id, id)`.execute(
    db,
  );
  // What the sweep looks for, a webhook at a time; a delivery that is under way or has ended leaves it.
  await sql`create index webhook_deliveries_due on webhook_deliveries (webhook_id, due_at) where status = 'pending'`.execute(
    db,
  );
  await sql`create index webhook_deliveries_leased on webhook_deliveries (due_at) where status = 'delivering'`.execute(
    db,
  );

  await clustered(
    db.schema
      .createTable('webhook_attempts')
      .addColumn('delivery_id', 'text', (c) => c.notNull())
      .addColumn('attempt', 'integer', (c) => c.notNull())
      .addColumn('started_at', moment, (c) => c.notNull())
      .addColumn('duration_ms', 'bigint', (c) => c.notNull())
      .addColumn('status', 'integer')
      .addColumn('error', 'text')
      .addColumn('response', 'text')
      .addPrimaryKeyConstraint('webhook_attempts_pk', ['delivery_id', 'attempt']),
  ).execute();

  await clustered(
    db.schema
      .createTable('webhook_delivery_counts')
      .addColumn('webhook_id', 'text', (c) => c.notNull())
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('writer', 'text', (c) => c.notNull())
      .addColumn('count', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('webhook_delivery_counts_pk', ['webhook_id', 'status', 'writer']),
  ).execute();
}
