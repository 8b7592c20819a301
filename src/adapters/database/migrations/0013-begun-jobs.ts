/**
 * Adds whether the code of a job has begun, of jobs that have a key or may expire: a later claim that ends before the code
 * begins says nothing about the earlier ones.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const statement = `alter table jobs add column has_begun integer default 0 not null`;
  await sql.raw(statement).execute(db);
}
