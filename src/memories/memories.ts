/**
 * Memories: texts that an agent can look up in later runs. Listing, searching, adding, changing and
 * deleting them, for clients and for runs. Each writer locks the agent first, so that writers of one
 * agent take turns and no memory outlives its agent. Another organization's memories are not found.
 */
import type { Database, Transaction } from '../database/database.ts';
import type { PageAsked } from '../database/page-bytes.ts';
import { bind } from '../kernel/bind.ts';
import { type Clock, timestamp } from '../kernel/clock.ts';
import { notFound, PlatformError } from '../kernel/errors.ts';
import { isId } from '../kernel/ids.ts';
import { checkBytes, type MemoryFields } from './fields.ts';
import { renewIndex } from './index-all.ts';
import {
  deleteMemories,
  findMemory,
  type LockedRow,
  listMemoriesWithinBytes,
  lockMemory,
  reindexMemory,
  someMemories,
  updateMemory,
  type VisibleMemoryRow,
} from './memories.store.ts';
import {
  addToCounts,
  countOfTag,
  deleteEmptyOwner,
  findOwner,
  findRemovedOwner,
  markRemoved,
} from './owners.store.ts';
import { queryOf } from './query.ts';
import {
  deleteAll,
  indexedAs,
  insertAll,
  newMemory,
  type Owning,
  type RunChanges,
} from './record.ts';
import { search } from './search.ts';
import { columnsOfWords, retagged } from './terms.ts';
import { readWords } from './words.ts';

/** Rows deleted in one transaction of the purge, and transactions of one call. */
const purgedRowsMax = 500;
const purgeStepsMax = 20;

/** The functions of agents that memories use. All throw `404 not_found` for an unknown agent. */
export interface AgentsOfMemories {
  find(organizationId: string, agentId: string): Promise<unknown>;
  /** Locks the agent: it is not deleted or locked by others before the transaction ends. */
  lock(tx: Transaction, organizationId: string, agentId: string): Promise<{ created_at: number }>;
}

export type Memories = ReturnType<typeof createMemories>;

interface MemoriesDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly agents: AgentsOfMemories;
}

export function createMemories(deps: MemoriesDeps) {
  return bind(deps, {
    ...{ findAgent, find, list, get, create, update, remove },
    ...{ keep, purge, renew },
  });
}

/** `404 not_found` for an agent that does not exist. */
async function findAgent({ agents }: MemoriesDeps, owning: Owning): Promise<void> {
  await agents.find(owning.organizationId, owning.agentId);
}

/** `404 not_found` for a memory, or an agent, that does not exist. */
async function find(deps: MemoriesDeps, owning: Owning, id: string): Promise<void> {
  await findAgent(deps, owning);
  await findRow(deps, owning, id);
}

/** The memory, or `404 not_found`. */
async function findRow({ database: { read } }: MemoriesDeps, owning: Owning, id: string) {
  const owner = await findOwner(read, owning);
  const row = owner && isId(id) && (await findMemory(read, { owner: owner.id, id }));
  if (!row) throw notFound('Memory');
  return row;
}

/** A page: newest first, or with `q` best first. `tag` has to be equal. */
async function list(
  { database: { read } }: MemoriesDeps,
  owning: Owning,
  { q, tag }: { q?: string | undefined; tag?: string | undefined },
  page: PageAsked,
) {
  const owner = await findOwner(read, owning);
  if (owner === undefined) return { memories: [], total: 0, next: null };
  const { rows, total, next } =
    q === undefined
      ? {
          ...(await listMemoriesWithinBytes(read, owner.id, { tag }, page)),
          total: tag === undefined ? owner.count : await countOfTag(read, owner.id, tag),
        }
      : await search(read, { owner, query: queryOf(q), tag }, page);
  return { memories: rows.map((row) => memoryView(owning.agentId, row)), total, next };
}

async function get(deps: MemoriesDeps, owning: Owning, id: string) {
  return memoryView(owning.agentId, await findRow(deps, owning, id));
}

async function create(
  { database, clock, agents }: MemoriesDeps,
  owning: Owning,
  fields: MemoryFields & { content: string },
) {
  const memory = newMemory(fields, clock.now());
  await database.write(async (tx) => {
    await agents.lock(tx, owning.organizationId, owning.agentId);
    await insertAll(tx, owning, [memory]);
  });
  return memoryView(owning.agentId, { ...memory, updated_at: memory.created_at });
}

/** Runs `change` on an existing memory, while the agent is locked against other writers. */
function writeTo<T>(
  { database, agents }: MemoriesDeps,
  owning: Owning,
  id: string,
  change: (tx: Transaction, owner: number, row: LockedRow) => Promise<T>,
): Promise<T> {
  return database.write(async (tx) => {
    await agents.lock(tx, owning.organizationId, owning.agentId);
    const owner = await findOwner(tx, owning);
    const row = owner && isId(id) && (await lockMemory(tx, owner.id, id));
    if (!row) throw notFound('Memory');
    return await change(tx, owner.id, row);
  });
}

/** Changes what `fields` name. */
async function update(deps: MemoriesDeps, owning: Owning, id: string, fields: MemoryFields) {
  checkBytes(fields);
  const { content, tag, metadata } = fields;
  // Outside of the transaction, because other writers wait for that.
  const words = content === undefined ? null : readWords(content);
  const found = words && columnsOfWords(words, tag ?? '');
  return await writeTo(deps, owning, id, async (tx, owner, row) => {
    if (Object.keys(fields).length === 0) return memoryView(owning.agentId, row);
    const after: VisibleMemoryRow = {
      ...row,
      content: content ?? row.content,
      tag: tag ?? row.tag,
      metadata: metadata === undefined ? row.metadata : JSON.stringify(metadata),
      // A clock that was set back, or has not moved, makes no change older than the one before.
      updated_at: Math.max(deps.clock.now(), row.updated_at + 1),
    };
    const before = indexedAs(row);
    const terms = retagged(found?.terms ?? before.terms, after.tag);
    // An entry of an earlier version stays one that is made anew.
    const isOld = found === null && row.terms === null;
    await updateMemory(tx, row.seq, {
      ...columnsOf(after),
      ...found,
      terms: isOld ? null : terms,
    });
    if (terms !== before.terms) await reindexMemory(tx, owner, before, terms);
    if (after.tag !== row.tag) {
      await addToCounts(tx, owner, new Map([[row.tag, -1]]).set(after.tag, 1));
    }
    return memoryView(owning.agentId, after);
  });
}

async function remove(deps: MemoriesDeps, owning: Owning, id: string): Promise<void> {
  await writeTo(deps, owning, id, async (tx, owner, row) => {
    await deleteMemories(tx, owner, [indexedAs(row)]);
    await addToCounts(tx, owner, new Map([[row.tag, -1]]));
  });
}

/**
 * Records the memory changes of runs, in the transaction that completes them. A deleted memory or a deleted
 * agent is no error. An agent that was created after the job was accepted is another one of the same id, and
 * gets nothing.
 */
async function keep({ agents }: MemoriesDeps, tx: Transaction, runs: readonly RunChanges[]) {
  // Always in one order, so that two transactions never wait for each other.
  const keyOf = (run: Owning) => `${run.organizationId}/${run.agentId}`;
  const byAgent = [...Map.groupBy(runs, keyOf)].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [, ofAgent] of byAgent) {
    const since = await lockedSince(agents, tx, ofAgent[0] as RunChanges);
    for (const run of ofAgent) if (since <= run.acceptedAt) await keepOne(tx, run);
  }
}

/** Locks the agent. Returns when it was created; infinity for one that does not exist. */
async function lockedSince(
  agents: AgentsOfMemories,
  tx: Transaction,
  { organizationId, agentId }: Owning,
): Promise<number> {
  try {
    return (await agents.lock(tx, organizationId, agentId)).created_at;
  } catch (error) {
    if (error instanceof PlatformError && error.code === 'not_found') return Infinity;
    throw error;
  }
}

async function keepOne(tx: Transaction, run: RunChanges): Promise<void> {
  if (run.forgotten.length > 0) await deleteAll(tx, run, run.forgotten);
  if (run.remembered.length > 0) await insertAll(tx, run, run.remembered);
}

/** Deletes some of the marked memories, in small transactions that delay no other writer for long. */
async function purge({ database }: MemoriesDeps): Promise<void> {
  for (let step = 0; step < purgeStepsMax; step++) {
    const owner = (await findRemovedOwner(database.read, {}))?.id;
    if (owner === undefined) return;
    await database.write(async (tx) => {
      const rows = await someMemories(tx, owner, purgedRowsMax);
      if (rows.length === 0) await deleteEmptyOwner(tx, owner, purgedRowsMax);
      else await deleteMemories(tx, owner, rows.map(indexedAs));
    });
  }
}

/** Makes some of the index entries anew that an earlier version has made; how many. */
async function renew({ database }: MemoriesDeps): Promise<number> {
  return await renewIndex(database);
}

/** The memories of a deleted agent are marked, and no query finds them any more; `purge` deletes them. */
export const memoriesOfAgent = { remove: markRemoved };

function columnsOf({ content, tag, metadata, updated_at }: VisibleMemoryRow) {
  return { content, tag, metadata, updated_at };
}

/** A memory as runs get it. */
export function runMemoryView(row: VisibleMemoryRow) {
  return {
    id: row.id,
    content: row.content,
    tag: row.tag,
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  };
}

function memoryView(agent_id: string, row: VisibleMemoryRow) {
  const { id, ...others } = runMemoryView(row);
  return { id, agent_id, ...others };
}
