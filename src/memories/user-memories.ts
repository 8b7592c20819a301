/** All memories of a user, of all agents: read a few at a time, and erased in small transactions. */
import type { Database, Handle, Transaction } from '../database/database.ts';
import { PlatformError } from '../kernel/errors.ts';
import { compactIndex } from './index.store.ts';
import {
  listMemories,
  memoriesOfJobs,
  memoriesWrittenFor,
  someMemories,
} from './memories.store.ts';
import { deleteEmptyOwner, findAgentOfOwner, findOwnersOfUser } from './owners.store.ts';
import { agentOf, type Owning } from './owners.ts';
import { deleteRows } from './record.ts';

/** Rows read at a time, and erased in one transaction, which others wait for: each leaves the index with all of its terms. */
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

/**
 * Deletes the memories of a user, the user as their owner, and what runs for the user wrote for agents themselves, until
 * `isLate`; how many memories.
 */
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
  const find = (db: Handle) => memoriesWrittenFor(db, { organizationId, userId }, erasedMax);
  return erased + (await eraseFound(deps, organizationId, find, isLate));
}

/** Deletes what these jobs remembered, also for an agent itself, until `isLate`; how many memories. */
export async function eraseRowsOfJobs(
  deps: UserMemoriesDeps,
  { organizationId, jobIds }: { organizationId: string; jobIds: readonly string[] },
  isLate: () => boolean,
): Promise<number> {
  if (jobIds.length === 0) return 0;
  const find = (db: Handle) => memoriesOfJobs(db, jobIds, erasedMax);
  return await eraseFound(deps, organizationId, find, isLate);
}

/** Deletes what `find` finds, until it finds nothing or `isLate`; how many memories. */
async function eraseFound(
  deps: UserMemoriesDeps,
  organizationId: string,
  find: (db: Handle) => ReturnType<typeof memoriesOfJobs>,
  isLate: () => boolean,
): Promise<number> {
  const { database } = deps;
  let erased = 0;
  for (;;) {
    const [first] = isLate() ? [] : await find(database.read);
    if (first === undefined) return erased;
    const owner = await findAgentOfOwner(database.read, { id: first.owner });
    if (owner?.organization_id !== organizationId) return erased;
    erased += await database.write(async (tx) => {
      await locked(deps, tx, agentOf(owner));
      // Read again, as other writers may have changed them before the lock.
      const rows = (await find(tx)).filter((row) => row.owner === first.owner);
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

/**
 * Takes what was deleted before out of the index, too, in small transactions until `isLate`; whether that is done. A
 * repetition goes on with what it had begun.
 */
export async function compactMemoryIndex(
  database: Database,
  isLate: () => boolean,
): Promise<boolean> {
  for (let isFirst = true; !isLate(); isFirst = false) {
    if (!(await database.write((tx) => compactIndex(tx, isFirst)))) return true;
  }
  return false;
}
