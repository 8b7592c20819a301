/** Adds which job has taken the message of a job that steers it. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const statements = [
    `alter table jobs add column delivered_to text`,
    `create index jobs_delivered on jobs (delivered_to) where delivered_to is not null`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
