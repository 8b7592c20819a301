/** The queries that are alike on scheduled jobs and triggers, which both name an agent and a skill. */
import type { Selectable } from 'kysely';
import type { Handle } from './database.ts';
import type { Tables } from './tables.ts';

type StarterTable = 'scheduled_jobs' | 'agent_triggers';

/** A query: whether a row of the table names the agent. */
export function namesAgent(table: StarterTable) {
  return async (db: Handle, organizationId: string, agentId: string): Promise<boolean> => {
    const row = await db.kysely
      .selectFrom(table as 'scheduled_jobs')
      .select('id')
      .where('organization_id', '=', organizationId)
      .where('agent_id', '=', agentId)
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  };
}

/** A query: the rows of the table that run a skill version, newest first, and their total. */
export function startersOfSkill<
  T extends StarterTable,
  C extends string & keyof Selectable<Tables[T]>,
>(table: T, columns: readonly C[]) {
  type Row = Pick<Selectable<Tables[T]>, C>;
  return async (
    { kysely }: Handle,
    organizationId: string,
    skill: { category: string; name: string; version: string },
    limit: number,
  ): Promise<{ rows: Row[]; total: number }> => {
    const found = kysely
      .selectFrom(table as 'scheduled_jobs')
      .where('organization_id', '=', organizationId)
      .where('skill_category', '=', skill.category)
      .where('skill_name', '=', skill.name)
      .where('skill_version', '=', skill.version);
    const [rows, count] = await Promise.all([
      found
        .select(columns as readonly string[] as readonly 'id'[])
        .orderBy('id', 'desc')
        .limit(limit)
        .execute(),
      found.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirstOrThrow(),
    ]);
    return { rows: rows as unknown as Row[], total: Number(count.n) };
  };
}
