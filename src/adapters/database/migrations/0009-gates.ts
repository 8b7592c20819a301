/**
 * Adds gates: limits at which jobs wait for a place. A held job is in no index of turns, so that claims never read it. The
 * indexes of turns are built anew without held jobs.
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { schemaTypes } from '../schema/dialects.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { clustered } = schemaTypes[dialect];
  const turns = `(organization_id, api_key_id, priority, due_at, id)
    where status in ('queued', 'waiting') and held_by is null`;
  const statements = [
    `alter table skills add column concurrency text default '[]' not null`,
    `alter table jobs add column held_by text`,
    `alter table jobs add column gated integer default 0 not null`,
    `alter table jobs add column concurrency_key text`,
    `drop index jobs_turns`,
    `drop index jobs_turns_scheduled`,
    `create index jobs_turns on jobs ${turns} and trigger_type <> 'scheduled'`,
    `create index jobs_turns_scheduled on jobs ${turns} and trigger_type = 'scheduled'`,
    `create index jobs_held on jobs (held_by, organization_id, priority, id) where held_by is not null`,
    `create table gates (
      name text not null primary key,
      turn bigint default 0 not null,
      last_organization text default '' not null
    ) ${clustered}`,
    `create table places (
      gate text not null,
      job_id text not null,
      n integer default 0 not null,
      organization_id text not null,
      is_held integer default 1 not null,
      since text not null,
      constraint places_pk primary key (gate, job_id, n)
    ) ${clustered}`,
    `create index places_of_gate on places (gate, is_held, since)`,
    `create index places_of_job on places (job_id)`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
