/**
 * Agents that were deleted lately. What belongs to a deleted agent is told from what belongs to a newer one of the same id
 * by its time. So some time has to lie between the two, because the processes of a cluster have different clocks.
 */
import type { Handle, Transaction } from '../database/database.ts';

/** The assumed clock skew between two processes. */
export const clockSkewMs = 100;
/** The least time between the deletion of an agent and the creation of one with the same id. */
const reuseAfterMs = 5 * clockSkewMs;
/** How long deletions are kept. */
const keptMs = 60_000;

/** Records the deletion of an agent, and forgets old ones. */
export async function recordRemoval(
  tx: Transaction,
  organizationId: string,
  id: string,
  now: number,
): Promise<void> {
  await tx.kysely
    .deleteFrom('removed_agents')
    .where('removed_at', '<', now - keptMs)
    .execute();
  await tx.kysely
    .insertInto('removed_agents')
    .values({ organization_id: organizationId, agent_id: id, removed_at: now })
    .onConflict((conflict) =>
      conflict.columns(['organization_id', 'agent_id']).doUpdateSet({ removed_at: now }),
    )
    .execute();
}

/** Milliseconds until an agent of this id may be created; 0 when it may be now. */
export async function msUntilReusable(
  db: Handle,
  organizationId: string,
  id: string,
  now: number,
): Promise<number> {
  const row = await db.kysely
    .selectFrom('removed_agents')
    .select('removed_at')
    .where('organization_id', '=', organizationId)
    .where('agent_id', '=', id)
    .executeTakeFirst();
  if (row === undefined) return 0;
  return Math.min(reuseAfterMs, Math.max(0, row.removed_at + reuseAfterMs - now));
}
