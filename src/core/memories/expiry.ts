/** Deletes expired memories in small transactions. Queries already exclude them from the time of expiry. */
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { Agents } from '../agents/agents.ts';
import { expiredOf, nextExpiry } from './memories.store.ts';
import { findExpiringOwner, type OwnerRow, setNextExpiry } from './owners.store.ts';
import { agentOf, markRemoved, ownersSeen } from './owners.ts';
import { deleteRows } from './record.ts';

/** Rows deleted in one transaction, and transactions of one call. */
const expiredRowsMax = 500;
const stepsMax = 20;

/** Deletes some of the memories that have expired by `now`; returns how many. */
export async function deleteExpired(
  database: Database,
  agents: Agents,
  now: number,
): Promise<number> {
  let deleted = 0;
  for (let step = 0; step < stepsMax; step++) {
    const owner = await findExpiringOwner(database.read, { now });
    if (owner === undefined) break;
    deleted += await database.write((tx) => deleteSome(agents, tx, owner, now));
  }
  return deleted;
}

type ExpiringOwner = NonNullable<Awaited<ReturnType<typeof findExpiringOwner>>>;

async function deleteSome(
  agents: Agents,
  tx: Transaction,
  owner: ExpiringOwner,
  now: number,
): Promise<number> {
  const owning = agentOf(owner);
  if ((await agents.lockIfPresent(tx, owning.organizationId, owning.agentId)) === undefined) {
    // The agent is deleted, so leave the memories to the purge.
    await markRemoved(tx, owning.organizationId, owning.agentId);
    return 0;
  }
  const rows = await expiredOf(tx, owner.id, now, expiredRowsMax);
  if (rows.length > 0) await deleteRows(tx, rows);
  const together = (await ownersSeen(tx, owning, undefined)).filter(isTogether);
  for (const { id } of [owner, ...together]) await setNextExpiry(tx, id, await nextExpiry(tx, id));
  return rows.length;
}

const isTogether = ({ kind }: OwnerRow) => kind === 2;
