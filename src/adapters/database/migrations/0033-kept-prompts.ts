/**
 * Adds what calls of models were sent: a row for each call, which repeats nothing of the earlier rows of its job; how many
 * bytes each organization has of them; and the settings.
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { schemaTypes } from '../schema/dialects.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { clustered } = schemaTypes[dialect];
  const statements = [
    `alter table agents add column keep_prompts bigint default 0 not null`,
    `create table prompts (
      job_id text not null,
      n bigint not null,
      organization_id text not null,
      generation text not null,
      turn bigint not null,
      state text not null,
      bytes bigint not null,
      kept_bytes bigint not null,
      chain_from bigint not null,
      body text,
      created_at bigint not null,
      constraint prompts_pk primary key (job_id, n)
    ) ${clustered}`,
    `create index prompts_by_age on prompts (organization_id, created_at) where state = 'kept'`,
    `create table prompt_totals (
      organization_id text not null primary key,
      bytes bigint not null
    ) ${clustered}`,
    `create table prompt_settings (
      organization_id text not null primary key,
      keep text,
      retention_days bigint,
      max_mb bigint
    ) ${clustered}`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
