/**
 * Adds batches of jobs. Indexes find the jobs of a batch, those that have not ended, and the batches that are not completed,
 * which the sweep reads.
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { schemaTypes } from '../schema/dialects.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const statements = [
    `alter table jobs add column batch_id text`,
    `create index jobs_of_batch on jobs (batch_id, id) where batch_id is not null`,
    `create index jobs_open_of_batch on jobs (batch_id) where batch_id is not null and due_at is not null`,
    `create table batches (
      id text not null primary key,
      organization_id text not null,
      api_key_id text not null,
      accepted integer not null,
      refused integer not null,
      idempotency_key text,
      fingerprint text,
      completed integer default 0 not null,
      failed integer default 0 not null,
      cancelled integer default 0 not null,
      created_at bigint not null,
      completed_at bigint,
      results text not null
    ) ${schemaTypes[dialect].clustered}`,
    `create unique index batches_key on batches (api_key_id, idempotency_key) where idempotency_key is not null`,
    `create index batches_newest on batches (organization_id, id)`,
    `create index batches_open on batches (id) where completed_at is null`,
    `create index batches_completed on batches (completed_at) where completed_at is not null`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
