/**
 * Adds rates of skills and the starts that count at them, in a hundredth steps of a window, so that rows are few; and skills
 * that slow down after a refusal, with the pauses that end by themselves.
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { schemaTypes } from '../schema/dialects.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { clustered } = schemaTypes[dialect];
  const statements = [
    `alter table skills add column rate text default '[]' not null`,
    `alter table skills add column slows_down integer default 0 not null`,
    `create table rate_starts (
      gate text not null,
      until bigint not null,
      starts integer not null,
      constraint rate_starts_pk primary key (gate, until)
    ) ${clustered}`,
    `create index rate_starts_until on rate_starts (until)`,
    `create table timed_pauses (
      name text not null primary key,
      until bigint not null
    ) ${clustered}`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
