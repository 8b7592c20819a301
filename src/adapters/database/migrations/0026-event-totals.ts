/** How many events are stored for an organization, and which of its jobs have not ended. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const clustered = clusteredIn(dialect);
  await clustered(
    db.schema
      .createTable('event_totals')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('shard', 'integer', (c) => c.notNull())
      .addColumn('events', 'integer', (c) => c.notNull())
      .addColumn('bytes', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('event_totals_pk', ['organization_id', 'shard']),
  ).execute();
  await sql`insert into event_totals (organization_id, shard, events, bytes)
    select organization_id, 0, count(*), sum(octet_length(data)) from received_events
    group by organization_id`.execute(db);

  // The oldest unended job of an organization: the events before it can be taken by none.
  await sql`create index jobs_unended on jobs (organization_id, id) where due_at is not null`.execute(
    db,
  );
  await sql`create index received_events_oldest on received_events (organization_id, taken, id)`.execute(
    db,
  );
  // Few events are for one job.
  await sql`create index received_events_job on received_events (job_id) where job_id is not null`.execute(
    db,
  );
}
