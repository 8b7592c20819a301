/** Runs that wait: their steps and waits, events from outside, approvals, and jobs that jobs start. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const moment = 'bigint';
  const clustered = clusteredIn(dialect);

  await db.schema.alterTable('jobs').addColumn('resumed_at', moment).execute();
  await db.schema
    .alterTable('jobs')
    .addColumn('active_ms', 'bigint', (c) => c.notNull().defaultTo(0))
    .execute();
  await db.schema.alterTable('jobs').addColumn('parent_job_id', 'text').execute();
  await db.schema.alterTable('jobs').addColumn('parent_step', 'integer').execute();
  await db.schema
    .alterTable('jobs')
    .addColumn('depth', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  // Most jobs have no parent.
  await sql`create index jobs_children on jobs (parent_job_id, id) where parent_job_id is not null`.execute(
    db,
  );

  if (dialect === 'sqlite') {
    await sql`create index jobs_unloaded on jobs (organization_id, id) where status = 'waiting'`.execute(
      db,
    );
  } else {
    await sql`drop index job_counts_unended`.execute(db);
    await sql`create index job_counts_unended on job_counts (trigger_type, status)
      where status in ('queued', 'active', 'waiting')`.execute(db);
  }

  await db.schema.alterTable('job_steps').addColumn('digest', 'text').execute();
  await db.schema.alterTable('job_steps').addColumn('due_at', moment).execute();
  await db.schema.alterTable('job_steps').addColumn('attempt', 'integer').execute();
  await db.schema.alterTable('job_steps').addColumn('seen_to', 'integer').execute();
  await db.schema.alterTable('job_steps').addColumn('told', 'integer').execute();

  await clustered(
    db.schema
      .createTable('event_waits')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('event', 'text', (c) => c.notNull())
      .addColumn('key', 'text', (c) => c.notNull())
      .addColumn('job_id', 'text', (c) => c.notNull())
      .addColumn('n', 'integer', (c) => c.notNull())
      .addPrimaryKeyConstraint('event_waits_pk', [
        'organization_id',
        'event',
        'key',
        'job_id',
        'n',
      ]),
  ).execute();
  await sql`create index event_waits_job on event_waits (job_id)`.execute(db);

  await clustered(
    db.schema
      .createTable('event_positions')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('event', 'text', (c) => c.notNull())
      .addColumn('key', 'text', (c) => c.notNull())
      .addColumn('job_id', 'text', (c) => c.notNull())
      .addColumn('event_id', 'text', (c) => c.notNull())
      .addPrimaryKeyConstraint('event_positions_pk', ['organization_id', 'event', 'key', 'job_id']),
  ).execute();
  await sql`create index event_positions_job on event_positions (job_id)`.execute(db);

  await clustered(
    db.schema
      .createTable('received_events')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('event', 'text', (c) => c.notNull())
      .addColumn('key', 'text', (c) => c.notNull())
      .addColumn('job_id', 'text')
      .addColumn('taken', 'integer', (c) => c.notNull().defaultTo(0))
      .addColumn('told', 'integer', (c) => c.notNull().defaultTo(0))
      .addColumn('created_at', moment, (c) => c.notNull())
      // The last, so that SQLite reads the others without it.
      .addColumn('data', 'text', (c) => c.notNull()),
  ).execute();
  await sql`create index received_events_key on received_events (organization_id, event, key, id)`.execute(
    db,
  );
  await sql`create index received_events_untaken on received_events (organization_id, event, key, id) where taken = 0`.execute(
    db,
  );
  await sql`create index received_events_taken on received_events (organization_id, event, key, id) where taken = 1`.execute(
    db,
  );
  // Few events are not told at once to all that wait for them.
  await sql`create index received_events_untold on received_events (organization_id, event, key, id) where told = 0`.execute(
    db,
  );

  await clustered(
    db.schema
      .createTable('event_idempotency_keys')
      .addColumn('owner', 'text', (c) => c.notNull())
      .addColumn('idempotency_key', 'text', (c) => c.notNull())
      .addColumn('fingerprint', 'text', (c) => c.notNull())
      .addColumn('event_id', 'text', (c) => c.notNull())
      .addColumn('delivered', 'integer', (c) => c.notNull())
      .addColumn('created_at', moment, (c) => c.notNull())
      .addPrimaryKeyConstraint('event_idempotency_keys_pk', ['owner', 'idempotency_key']),
  ).execute();
  await sql`create index event_idempotency_keys_age on event_idempotency_keys (created_at)`.execute(
    db,
  );

  await clustered(
    db.schema
      .createTable('approvals')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('agent_id', 'text', (c) => c.notNull())
      .addColumn('conversation_id', 'text', (c) => c.notNull())
      .addColumn('job_id', 'text', (c) => c.notNull())
      .addColumn('n', 'integer', (c) => c.notNull())
      .addColumn('step', 'text', (c) => c.notNull())
      .addColumn('title', 'text', (c) => c.notNull())
      .addColumn('details', 'text', (c) => c.notNull())
      .addColumn('digest', 'text', (c) => c.notNull())
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('requested_at', moment, (c) => c.notNull())
      .addColumn('expires_at', moment, (c) => c.notNull())
      .addColumn('decided_at', moment)
      .addColumn('decided_by', 'text')
      .addColumn('decided_by_kind', 'text')
      .addColumn('decided_by_key', 'text')
      .addColumn('reason', 'text')
      .addUniqueConstraint('approvals_step', ['job_id', 'n']),
  ).execute();
  await sql`create index approvals_newest on approvals (organization_id, id)`.execute(db);
  // What a list may be narrowed by, so that it is read and counted in an index; few approvals are made a second.
  for (const narrowing of ['status', 'agent_id', 'agent_id, status']) {
    const name = sql.id(`approvals_${narrowing.replaceAll(', ', '_')}`);
    await sql`create index ${name} on approvals (organization_id, ${sql.raw(narrowing)}, id)`.execute(
      db,
    );
  }

  await db.schema.alterTable('agent_triggers').addColumn('event_name', 'text').execute();
  await db.schema.alterTable('agent_triggers').addColumn('event_key_mapping', 'text').execute();
  await db.schema.alterTable('trigger_calls').addColumn('event_id', 'text').execute();

  await db.schema
    .alterTable('agents')
    .addColumn('approvals', 'text', (c) => c.notNull().defaultTo('[]'))
    .execute();
}
