/** Scheduled jobs, how their last runs went, and what became of every slot. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const moment = 'bigint';
  const clustered = clusteredIn(dialect);

  await clustered(
    db.schema
      .createTable('scheduled_jobs')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('api_key_id', 'text', (c) => c.notNull())
      .addColumn('agent_id', 'text', (c) => c.notNull())
      .addColumn('skill_category', 'text', (c) => c.notNull())
      .addColumn('skill_name', 'text', (c) => c.notNull())
      .addColumn('skill_version', 'text', (c) => c.notNull())
      .addColumn('cron_expression', 'text', (c) => c.notNull())
      .addColumn('cron_key', 'text', (c) => c.notNull())
      .addColumn('input', 'text', (c) => c.notNull())
      .addColumn('enabled', 'integer', (c) => c.notNull())
      .addColumn('next_run_at', moment, (c) => c.notNull())
      .addColumn('created_at', moment, (c) => c.notNull())
      .addColumn('updated_at', moment, (c) => c.notNull())
      // Begins with the agent, so it also finds the scheduled jobs that name one.
      .addUniqueConstraint('scheduled_jobs_tuple', [
        'organization_id',
        'agent_id',
        'skill_category',
        'skill_name',
        'skill_version',
        'cron_key',
      ]),
  ).execute();
  await sql`create index scheduled_jobs_due on scheduled_jobs (next_run_at) where enabled = 1`.execute(
    db,
  );
  await sql`create index scheduled_jobs_newest on scheduled_jobs (organization_id, id)`.execute(db);

  // Apart from the scheduled job itself: the end of a run is recorded here, last in its transaction,
  // while a tick or a change may hold the scheduled job from its beginning on. In one row the two
  // would wait for each other.
  await clustered(
    db.schema
      .createTable('scheduled_job_last_runs')
      .addColumn('scheduled_job_id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('last_run_at', moment)
      .addColumn('last_run_status', 'text')
      .addColumn('last_run_job_id', 'text'),
  ).execute();

  await clustered(
    db.schema
      .createTable('scheduled_runs')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('scheduled_job_id', 'text', (c) => c.notNull())
      .addColumn('slot', moment)
      .addColumn('scheduled_for', moment, (c) => c.notNull())
      .addColumn('outcome', 'text', (c) => c.notNull())
      .addColumn('slots', 'integer', (c) => c.notNull())
      .addColumn('message', 'text')
      .addColumn('job_id', 'text')
      .addColumn('unwanted', 'integer', (c) => c.notNull())
      .addColumn('ended', 'integer', (c) => c.notNull())
      .addColumn('created_at', moment, (c) => c.notNull())
      .addUniqueConstraint('scheduled_runs_slot', ['scheduled_job_id', 'slot']),
  ).execute();
  await sql`create index scheduled_runs_newest on scheduled_runs (scheduled_job_id, id)`.execute(
    db,
  );
  // The few that go on, beside the many that are kept: what a deletion or a disabling has to end.
  await sql`create index scheduled_runs_going_on on scheduled_runs (scheduled_job_id) where ended = 0`.execute(
    db,
  );
  await sql`create index scheduled_runs_of_job on scheduled_runs (job_id) where job_id is not null`.execute(
    db,
  );
}
