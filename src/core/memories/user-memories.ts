/** Reads and erases all memories of a user, of all agents, in small batches. */
import type { Database, Handle } from '../../adapters/database/database.ts';
import type { Agents } from '../agents/agents.ts';
import { compactIndex } from './index.store.ts';
import {
  listMemories,
  memoriesOfJobs,
  memoriesWrittenFor,
  someMemories,
} from './memories.store.ts';
import {
  deleteEmptyOwner,
  deleteProfile,
  findAgentOfOwner,
  findOwnersOfUser,
} from './owners.store.ts';
import { agentOf } from './owners.ts';
import { deleteRows } from './record.ts';

/** Rows read at once and erased in one transaction, which blocks other writers: each row has many terms to remove. */
const readMax = 20;
const erasedMax = 50;

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
 * Deletes the memories and profiles of a user, the user's owner rows, and the agents' own memories that runs for the user wrote.
 * Stops when `isLate` returns true. Returns how many memories and profiles it deleted.
 */
export async function eraseRowsOfUser(
  database: Database,
  agents: Agents,
  { organizationId, userId }: { organizationId: string; userId: string },
  isLate: () => boolean,
): Promise<number> {
  let erased = 0;
  for (const owner of await findOwnersOfUser(database.read, { organizationId, userId })) {
    for (let isGone = false; !isGone && !isLate(); ) {
      isGone = await database.write(async (tx) => {
        // A deleted agent needs no lock, because it has no other writers.
        await agents.lockIfPresent(tx, organizationId, agentOf(owner).agentId);
        const rows = await someMemories(tx, owner.id, erasedMax);
        if (rows.length === 0) {
          if (await deleteProfile(tx, owner.id)) erased += 1;
          await deleteEmptyOwner(tx, owner.id, Number.MAX_SAFE_INTEGER);
        }
        await deleteRows(tx, rows);
        erased += rows.length;
        return rows.length === 0;
      });
    }
  }
  const find = (db: Handle) => memoriesWrittenFor(db, { organizationId, userId }, erasedMax);
  return erased + (await eraseFound(database, agents, organizationId, find, isLate));
}

/** Deletes the memories that these jobs wrote, also agents' own, until `isLate`; returns how many. */
export async function eraseRowsOfJobs(
  database: Database,
  agents: Agents,
  { organizationId, jobIds }: { organizationId: string; jobIds: readonly string[] },
  isLate: () => boolean,
): Promise<number> {
  if (jobIds.length === 0) return 0;
  const find = (db: Handle) => memoriesOfJobs(db, jobIds, erasedMax);
  return await eraseFound(database, agents, organizationId, find, isLate);
}

/** Deletes the memories of `find` until it returns none or `isLate`; returns how many. */
async function eraseFound(
  database: Database,
  agents: Agents,
  organizationId: string,
  find: (db: Handle) => ReturnType<typeof memoriesOfJobs>,
  isLate: () => boolean,
): Promise<number> {
  let erased = 0;
  for (;;) {
    const [first] = isLate() ? [] : await find(database.read);
    if (first === undefined) return erased;
    const owner = await findAgentOfOwner(database.read, { id: first.owner });
    if (owner?.organization_id !== organizationId) return erased;
    erased += await database.write(async (tx) => {
      await agents.lockIfPresent(tx, organizationId, agentOf(owner).agentId);
      // Read again: other writers may have changed them before the lock.
      const rows = (await find(tx)).filter((row) => row.owner === first.owner);
      await deleteRows(tx, rows);
      return rows.length;
    });
  }
}

/**
 * Removes the terms of deleted memories from the index, in small transactions until `isLate`. Returns whether it has
 * finished; the next call continues.
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
