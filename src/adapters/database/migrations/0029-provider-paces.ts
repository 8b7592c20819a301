/** Adds what is known of the pace of providers of models, and finds the runs that wait for one. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { schemaTypes } from '../schema/dialects.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { clustered } = schemaTypes[dialect];
  const statements = [
    `create table provider_paces (
      name text not null primary key,
      state text not null,
      changed_at bigint not null
    ) ${clustered}`,
    `create index job_steps_provider_waits on job_steps (job_id, n) where kind = 'provider' and status = 'waiting'`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
