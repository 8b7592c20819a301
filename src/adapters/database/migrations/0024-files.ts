/**
 * Adds files: their rows, the bytes that several of them may share (`file_blobs`), bytes that no row names any more or not
 * yet (`file_garbage`), and what each organization has (`file_totals`).
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { schemaTypes } from '../schema/dialects.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { clustered } = schemaTypes[dialect];
  const statements = [
    `create table files (
      id text not null primary key,
      organization_id text not null,
      name text not null,
      media_type text not null,
      bytes bigint not null,
      sha256 text not null,
      blob_key text not null,
      user_id text,
      job_id text,
      source_url text,
      created_at bigint not null,
      expires_at bigint not null
    ) ${clustered}`,
    `create index files_of_organization on files (organization_id, id)`,
    `create index files_of_user on files (organization_id, user_id, id) where user_id is not null`,
    `create index files_of_job on files (job_id) where job_id is not null`,
    `create index files_of_blob on files (blob_key)`,
    `create index files_expiring on files (expires_at)`,
    `create table file_blobs (
      organization_id text not null,
      sha256 text not null,
      blob_key text not null,
      bytes bigint not null,
      constraint file_blobs_pk primary key (organization_id, sha256)
    ) ${clustered}`,
    `create table file_garbage (
      blob_key text not null primary key,
      due_at bigint not null
    ) ${clustered}`,
    `create index file_garbage_due on file_garbage (due_at)`,
    `create table file_totals (
      organization_id text not null primary key,
      files bigint not null,
      bytes bigint not null
    ) ${clustered}`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
