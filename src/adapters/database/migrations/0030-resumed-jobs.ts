/** Adds from which jobs' records a job goes on; null for one that begins anew. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table jobs add column resumes text`.execute(db);
}
