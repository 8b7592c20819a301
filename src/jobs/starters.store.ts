/** What scheduled jobs and triggers are asked alike: both name an agent and a skill. */
import type { Selectable } from 'kysely';
import type { Handle } from '../database/database.ts';
import type { Tables } from '../database/tables.ts';

type StarterTable = 'scheduled_jobs' | 'agent_triggers';

/** Whether a row of the table names the agent. */
export async function isAgentNamed(
  db: Handle,
  table: StarterTable,
  organizationId: string,
  agentId: string,
): Promise<boolean> {
  const row = await db.kysely
    .selectFrom(table as 'scheduled_jobs')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('agent_id', '=', agentId)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** The rows of the table that run a skill version, newest first and up to `limit`, and their total. */
export async function listStartersOfSkill<
  T extends StarterTable,
  C extends string & keyof Selectable<Tables[T]>,
>(
  { kysely }: Handle,
  table: T,
  columns: readonly C[],
  organizationId: string,
  skill: { category: string; name: string; version: string },
  limit: number,
): Promise<{ rows: Pick<Selectable<Tables[T]>, C>[]; total: number }> {
  const found = kysely
    .selectFrom(table as 'scheduled_jobs')
    .where('organization_id', '=', organizationId)
    .where('skill_category', '=', skill.category)
    .where('skill_name', '=', skill.name)
    .where('skill_version', '=', skill.version);
  const [rows, count] = await Promise.all([
    found
      .select(columns as readonly 'id'[])
      .orderBy('id', 'desc')
      .limit(limit)
      .execute(),
    found.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirstOrThrow(),
  ]);
  return { rows: rows as unknown as Pick<Selectable<Tables[T]>, C>[], total: Number(count.n) };
}
