/** Adds the profiles that agents keep of their users, and which agents' models write them. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table agents add column profile text`).execute(db);
  // By the owner of the user's memories, with which a profile is deleted.
  await sql
    .raw(`create table profiles (
      owner bigint primary key,
      content text not null,
      version integer not null,
      created_at bigint not null,
      updated_at bigint not null,
      job_id text,
      conversation_id text
    )`)
    .execute(db);
}
