/**
 * Adds the keys of jobs: one row a key, locked while requests with that key are accepted, which names the newest job of the
 * key. The index finds the old rows that retention deletes.
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { schemaTypes } from '../schema/dialects.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const statements = [
    `alter table jobs add column job_key text`,
    `alter table jobs add column replaced_by text`,
    `create table job_keys (
      organization_id text not null,
      skill text not null,
      job_key text not null,
      job_id text not null,
      first_at bigint not null,
      constraint job_keys_pk primary key (organization_id, skill, job_key)
    ) ${schemaTypes[dialect].clustered}`,
    `create index job_keys_oldest on job_keys (first_at)`,
    `create index job_keys_of_job on job_keys (job_id)`,
    `alter table agent_triggers add column job_key text`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
