/** Whether an agent is named by a starter: a scheduled job or a trigger. */
import type { Handle } from './database.ts';

/** A query: whether a row of the table names the agent. */
export function namesAgent(table: 'scheduled_jobs' | 'agent_triggers') {
  return async (db: Handle, organizationId: string, agentId: string): Promise<boolean> => {
    const row = await db.kysely
      // The columns below are alike in both tables.
      .selectFrom(table as 'scheduled_jobs')
      .select('id')
      .where('organization_id', '=', organizationId)
      .where('agent_id', '=', agentId)
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  };
}
