/** All memories of a user, of all agents: read a few at a time, and erased in small transactions. */
import type { Database, Transaction } from '../database/database.ts';
import { PlatformError } from '../kernel/errors.ts';
import { compactIndex } from './index.store.ts';
import { listMemories, memoriesOfJobs, someMemories } from './memories.store.ts';
import { deleteEmptyOwner, findAgentOfOwner, findOwnersOfUser } from './owners.store.ts';
import { agentOf, type Owning } from './owners.ts';
import { deleteRows } from './record.ts';

/** Rows read, and erased in one transaction: what leaves the index without a trace costs a millisecond each. */
const readMax = 20;
const erasedMax = 50;

export interface UserMemoriesDeps {
  readonly database: Database;
  lock(tx: Transaction, organizationId: string, agentId: string): Promise<unknown>;
}

/** The memories of a user, the newest of each agent first. */
export async function* rowsOfUser(database: Database, organizationId: string, userId: string) {
  const { read } = database;
  for (const owner of await findOwnersOfUser(read, { organizationId, userId })) {
    const { agentId } = agentOf(owner);
    for (let offset = 0; ; offset += readMax) {
      const page = { limit: readMax, offset };
      const rows = await listMemories(read, [{ id: owner.id, kind: 1 }], { now: null }, page);
      for (const row of rows) yield { agentId, row };
      if (rows.length < readMax) break;
    }
  }
}

/** Deletes the memories of a user and the user as their owner, until `isLate`; how many memories. */
export async function eraseRowsOfUser(
  deps: UserMemoriesDeps,
  { organizationId, userId }: { organizationId: string; userId: string },
  isLate: () => boolean,
): Promise<number> {
  const { database } = deps;
  let erased = 0;
  for (const owner of await findOwnersOfUser(database.read, { organizationId, userId })) {
    for (let isGone = false; !isGone && !isLate(); ) {
      isGone = await database.write(async (tx) => {
        await locked(deps, tx, agentOf(owner));
        const rows = await someMemories(tx, owner.id, erasedMax);
        if (rows.length === 0) await deleteEmptyOwner(tx, owner.id, Number.MAX_SAFE_INTEGER);
        else await deleteRows(tx, rows);
        erased += rows.length;
        return rows.length === 0;
      });
    }
  }
  return erased;
}

/** Deletes what these jobs remembered, also for an agent itself; how many memories. */
export async function eraseRowsOfJobs(
  deps: UserMemoriesDeps,
  organizationId: string,
  jobIds: readonly string[],
): Promise<number> {
  const { database } = deps;
  if (jobIds.length === 0) return 0;
  let erased = 0;
  for (;;) {
    const found = await memoriesOfJobs(database.read, jobIds, erasedMax);
    const [first] = found;
    if (first === undefined) return erased;
    const owner = await findAgentOfOwner(database.read, { id: first.owner });
    if (owner?.organization_id !== organizationId) return erased;
    erased += await database.write(async (tx) => {
      await locked(deps, tx, agentOf(owner));
      // Read again, as other writers may have changed them before the lock.
      const rows = (await memoriesOfJobs(tx, jobIds, erasedMax)).filter(
        (row) => row.owner === first.owner,
      );
      await deleteRows(tx, rows);
      return rows.length;
    });
  }
}

/** Locks the agent; one that is gone has no other writers. */
async function locked({ lock }: UserMemoriesDeps, tx: Transaction, owning: Owning): Promise<void> {
  try {
    await lock(tx, owning.organizationId, owning.agentId);
  } catch (error) {
    if (!(error instanceof PlatformError && error.code === 'not_found')) throw error;
  }
}

/** Takes what was deleted before out of the index, too, in small transactions. */
export async function compactMemoryIndex(database: Database): Promise<void> {
  for (let isFirst = true; ; isFirst = false) {
    if (!(await database.write((tx) => compactIndex(tx, isFirst)))) return;
  }
}
