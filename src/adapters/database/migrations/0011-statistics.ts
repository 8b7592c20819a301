/** What became of runs in the last hours, who runs which skill, and what an organization waits for. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const clustered = clusteredIn(dialect);

  await clustered(
    db.schema
      .createTable('run_statistics')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('seconds', 'integer', (c) => c.notNull())
      .addColumn('start', 'bigint', (c) => c.notNull())
      .addColumn('skill_category', 'text', (c) => c.notNull())
      .addColumn('skill_name', 'text', (c) => c.notNull())
      .addColumn('skill_version', 'text', (c) => c.notNull())
      .addColumn('accepted', 'bigint', (c) => c.notNull())
      .addColumn('completed', 'bigint', (c) => c.notNull())
      .addColumn('failed', 'bigint', (c) => c.notNull())
      .addColumn('cancelled', 'bigint', (c) => c.notNull())
      .addColumn('duration_ms', 'bigint', (c) => c.notNull())
      .addColumn('longest_ms', 'bigint', (c) => c.notNull())
      .addColumn('prompt_tokens', 'bigint', (c) => c.notNull())
      .addColumn('completion_tokens', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('run_statistics_pk', [
        'organization_id',
        'seconds',
        'start',
        'skill_category',
        'skill_name',
        'skill_version',
      ]),
  ).execute();
  // Of expressions, so that retention alone reads by them: to show an organization or a skill, the planner
  // would sooner walk past all others of that age than use the primary key.
  await sql`create index run_statistics_age on run_statistics ((seconds + 0), (start + 0))`.execute(
    db,
  );

  await clustered(
    db.schema
      .createTable('skill_key_runs')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('skill_category', 'text', (c) => c.notNull())
      .addColumn('skill_name', 'text', (c) => c.notNull())
      .addColumn('skill_version', 'text', (c) => c.notNull())
      .addColumn('api_key_id', 'text', (c) => c.notNull())
      .addColumn('day', 'text', (c) => c.notNull())
      .addColumn('runs', 'bigint', (c) => c.notNull())
      .addColumn('last_used_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('skill_key_runs_pk', [
        'organization_id',
        'skill_category',
        'skill_name',
        'skill_version',
        'day',
        'api_key_id',
      ]),
  ).execute();
  await sql`create index skill_key_runs_age on skill_key_runs ((day || ''))`.execute(db);

  // What has waited longest of an organization, however much waits of others; a queued job is due at its
  // `run_at`. Of an expression that nothing else asks for: the planner would take it for claims as well,
  // while it believes the table to be small, and walk past all that waits.
  await sql`create index jobs_waiting on jobs (organization_id, run_at)
    where status || '' = 'queued'`.execute(db);
}
