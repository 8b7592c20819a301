/** The schema of the first version, for both databases; later migrations change it. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { agents } from '../schema/agents.ts';
import { schemaTypes } from '../schema/dialects.ts';
import { jobs } from '../schema/jobs.ts';
import { memories } from '../schema/memories.ts';
import { operation } from '../schema/operation.ts';
import { organizations } from '../schema/organizations.ts';
import { schedulesAndTriggers } from '../schema/schedules-and-triggers.ts';
import { skills } from '../schema/skills.ts';
import { webhooks } from '../schema/webhooks.ts';

const parts = [
  organizations,
  skills,
  agents,
  memories,
  jobs,
  schedulesAndTriggers,
  webhooks,
  operation,
];

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const statements = parts.flatMap((part) => part(schemaTypes[dialect]));
  for (const statement of statements) if (statement !== '') await sql.raw(statement).execute(db);
  if (dialect === 'postgres') await createDistance(db);
}

/** The function that counts different bits. PostgreSQL has `bit_count` from version 14 on. */
async function createDistance(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ version: number }>`
    select current_setting('server_version_num')::integer as version`.execute(db);
  const differing =
    Number(rows[0]?.version) >= 140_000
      ? 'bit_count(a # b)'
      : "length(replace((a # b)::text, '0', ''))::bigint";
  await sql`create function memory_distance(a bit varying, b bit varying)
    returns bigint language sql immutable as ${sql.lit(`select ${differing}`)}`.execute(db);
}
