/**
 * Agents that were deleted lately. Data of a deleted agent differ from those of a newer one with the same id by their time
 * alone. So some time has to lie between the two, because the processes of a cluster have different clocks.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import type { Transaction } from '../../adapters/database/database.ts';
import { idIn } from '../../adapters/database/ids-in.ts';
import { allRows, listOf } from '../../adapters/database/statement.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { AgentRow } from './agents.store.ts';

/** The assumed clock skew between two processes. */
export const clockSkewMs = 100;

/** Those of the agents that were created in the given time. */
export const listCreatedBetween = allRows<{
  organizationId: string;
  ids: readonly string[];
  after: number;
  until: number;
}>()((db, p, dialect) =>
  db
    .selectFrom('agents')
    .select('id')
    .where('organization_id', '=', p('organizationId'))
    .where(idIn(dialect, listOf(p, 'ids')))
    .where('created_at', '>', p('after'))
    .where('created_at', '<=', p('until')),
);

/** The least time between the deletion of an agent and the creation of one with the same id. */
const reuseAfterMs = 5 * clockSkewMs;
/** How long deletions are kept. */
const keptMs = 60_000;
/** Attempts to create an agent while others of its id are deleted. */
const triesMax = 3;

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

/** An agent of the id of a new one was deleted less than `reuseAfterMs` before. */
class RemovedLately extends Error {
  readonly removedAt: number;
  readonly waitMs: number;

  constructor(removedAt: number, waitMs: number) {
    super('An agent of this id was deleted a moment ago');
    this.removedAt = removedAt;
    this.waitMs = waitMs;
  }
}

/**
 * Creates an agent by `create`, which passes on its parameter to `requireReusable`. Waits and repeats it where an agent of
 * the id was deleted shortly before; `409 conflict` where that happens `triesMax` times.
 */
export async function createAfterRemoval<T>(
  id: string,
  create: (waitedFor: number | null) => Promise<T>,
): Promise<T> {
  let waitedFor: number | null = null;
  for (let tries = 0; tries < triesMax; tries += 1) {
    try {
      return await create(waitedFor);
    } catch (error) {
      if (!(error instanceof RemovedLately)) throw error;
      await elapsed(error.waitMs);
      waitedFor = error.removedAt;
    }
  }
  throw new PlatformError(
    'conflict',
    `The agent ${id} was deleted a moment ago: create it again in a second`,
  );
}

/**
 * Throws where an agent of the id was deleted shortly before `createdAt`. For the transaction that creates the new one,
 * after its insertion, which waits for a deletion under way. A deletion for which the caller has waited counts no more,
 * because the wall clock may have been set back since.
 */
export async function requireReusable(
  tx: Transaction,
  { organization_id, id, created_at }: Pick<AgentRow, 'organization_id' | 'id' | 'created_at'>,
  waitedFor: number | null,
): Promise<void> {
  const row = await tx.kysely
    .selectFrom('removed_agents')
    .select('removed_at')
    .where('organization_id', '=', organization_id)
    .where('agent_id', '=', id)
    .executeTakeFirst();
  if (row === undefined || row.removed_at === waitedFor) return;
  const waitMs = Math.min(reuseAfterMs, row.removed_at + reuseAfterMs - created_at);
  if (waitMs > 0) throw new RemovedLately(row.removed_at, waitMs);
}
