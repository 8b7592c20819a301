/**
 * Memories: texts that an agent can look up in later runs. Listing, searching, adding, changing and
 * deleting them, for clients and for runs. Each writer locks the agent first, so that writers of one
 * agent take turns and no memory outlives its agent. Another organization's memories are not found. It has more than 300
 * lines because all verbs on memories are bound here.
 */
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { bind } from '../../kernel/bind.ts';
import { type Clock, timestamp } from '../../kernel/clock.ts';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import { deleteExpired } from './expiry.ts';
import { checkBytes, type MemoryFields } from './fields.ts';
import { createFrequentTerms, type FrequentTerms } from './frequent-terms.ts';
import { reindexMemory } from './index.store.ts';
import { renewIndex } from './index-all.ts';
import type { Meaning } from './meaning.ts';
import {
  deleteMemories,
  expiredMemories,
  findMemory,
  type LockedRow,
  listMemoriesWithinBytes,
  lockMemory,
  someMemories,
  updateMemory,
  type VisibleMemoryRow,
} from './memories.store.ts';
import {
  addToCounts,
  agentsOfUser,
  countOfTag,
  deleteEmptyOwner,
  findRemovedOwner,
  lowerNextExpiry,
} from './owners.store.ts';
import { markRemoved, type OfUser, type Owning, ownersOf, ownersSeen } from './owners.ts';
import { queryOf } from './query.ts';
import {
  deleteAll,
  deleteRows,
  indexedAs,
  insertAll,
  newMemory,
  ownersOfRow,
  type RunChanges,
} from './record.ts';
import { countOf, mayHaveExpired, search, type Wanted } from './search.ts';
import { columnsOfWords, retagged } from './terms.ts';
import {
  compactMemoryIndex,
  eraseRowsOfJobs,
  eraseRowsOfUser,
  rowsOfUser,
} from './user-memories.ts';
import { deleteVectors } from './vectors.store.ts';
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
  /** Semantic search; null when memories have no vectors. */
  readonly meaning?: () => Meaning | null;
}

interface MemoriesState extends MemoriesDeps {
  readonly frequent: FrequentTerms;
}

export function createMemories(deps: MemoriesDeps) {
  const frequent = createFrequentTerms(deps.clock);
  const state: MemoriesState = { ...deps, frequent };
  const verbs = bind(state, {
    ...{ findAgent, find, list, get, create, update, remove },
    ...{ keep, purge, renew, expire },
    ...{ listAgentsOfUser, ofUser, eraseUser, eraseOfJobs, compactIndex },
  });
  return { ...verbs, frequent, meaning: deps.meaning ?? (() => null) };
}

/** `404 not_found` for an agent that does not exist. */
async function findAgent({ agents }: MemoriesDeps, owning: Owning): Promise<void> {
  await agents.find(owning.organizationId, owning.agentId);
}

/** The agent, and which of its memories the client reaches: all, or only the agent's own when `userId` is null. */
export interface Reach extends Owning {
  readonly userId?: null;
}

/** `404 not_found` for a memory, or an agent, that does not exist. */
async function find(deps: MemoriesDeps, reach: Reach, id: string): Promise<void> {
  await findAgent(deps, reach);
  await findRow(deps, reach, id);
}

/** The memory, or `404 not_found`. */
async function findRow({ database: { read }, clock }: MemoriesDeps, reach: Reach, id: string) {
  const owners = isId(id) ? await ownersSeen(read, reach, reach.userId) : [];
  const row = owners.length > 0 && (await findMemory(read, owners, id, clock.now()));
  if (!row) throw notFound('Memory');
  return row;
}

/** The filters of a list. */
interface ListFilter {
  readonly q?: string | undefined;
  /** Matches exactly. */
  readonly tag?: string | undefined;
  /** Null for the agent's own memories only. */
  readonly userId?: OfUser;
}

/** A page: newest first, or with `q` best first. */
async function list(
  { database: { read }, clock, frequent, meaning = () => null }: MemoriesState,
  owning: Owning,
  { q, tag, userId }: ListFilter,
  page: PageAsked,
) {
  const owners = await ownersOf(read, owning, userId);
  if (owners.length === 0) return { memories: [], total: 0, next: null };
  const seen = { owners, tag, now: clock.now() };
  const { rows, total, next } =
    q === undefined
      ? await listNewest(read, seen, page)
      : await search(
          read,
          {
            ...seen,
            frequent,
            query: queryOf(q),
            nearest: async () => (await meaning()?.nearest(owning, seen, q)) ?? [],
          },
          page,
        );
  return { memories: rows.map((row) => memoryView(owning.agentId, row)), total, next };
}

async function listNewest(
  read: Database['read'],
  { tag, ...seen }: Pick<Wanted, 'owners' | 'tag' | 'now'>,
  page: PageAsked,
) {
  const { owners } = seen;
  const now = mayHaveExpired(seen) ? seen.now : null;
  const expired = now === null ? [] : await expiredMemories(read, owners, now, tag);
  const ids = owners.map(({ id }) => id);
  const all = tag === undefined ? countOf(seen) : await countOfTag(read, ids, tag);
  const listed = await listMemoriesWithinBytes(read, owners, { tag, now }, page);
  return { ...listed, total: all - expired.length };
}

async function get(deps: MemoriesDeps, reach: Reach, id: string) {
  return memoryView(reach.agentId, await findRow(deps, reach, id));
}

/** Adds a memory of the agent's own, or of a user. */
async function create(
  { database, clock, agents }: MemoriesDeps,
  owning: Owning,
  fields: MemoryFields & { content: string },
  userId: string | null = null,
) {
  const memory = newMemory(fields, { now: clock.now(), userId });
  await database.write(async (tx) => {
    await agents.lock(tx, owning.organizationId, owning.agentId);
    await insertAll(tx, owning, [memory]);
  });
  return memoryView(owning.agentId, memory);
}

/** Runs `change` on an existing memory, while the agent is locked against other writers. */
function writeTo<T>(
  { database, clock, agents }: MemoriesDeps,
  reach: Reach,
  id: string,
  change: (tx: Transaction, row: LockedRow) => Promise<T>,
): Promise<T> {
  return database.write(async (tx) => {
    await agents.lock(tx, reach.organizationId, reach.agentId);
    const owners = isId(id) ? await ownersSeen(tx, reach, reach.userId) : [];
    const row = owners.length > 0 && (await lockMemory(tx, owners, id, clock.now()));
    if (!row) throw notFound('Memory');
    return await change(tx, row);
  });
}

/** Changes the given fields. */
async function update(deps: MemoriesDeps, reach: Reach, id: string, fields: MemoryFields) {
  checkBytes(fields);
  const { content, tag, metadata, expires_at } = fields;
  // Outside of the transaction, which blocks other writers.
  const words = content === undefined ? null : readWords(content);
  const found = words && columnsOfWords(words, tag ?? '');
  return await writeTo(deps, reach, id, async (tx, row) => {
    if (Object.keys(fields).length === 0) return memoryView(reach.agentId, row);
    const after: VisibleMemoryRow = {
      ...row,
      content: content ?? row.content,
      tag: tag ?? row.tag,
      metadata: metadata === undefined ? row.metadata : JSON.stringify(metadata),
      expires_at: expires_at === undefined ? row.expires_at : expires_at,
      edited: content === undefined || content === row.content ? row.edited : 1,
      // Strictly increasing, even if the clock was set back.
      updated_at: Math.max(deps.clock.now(), row.updated_at + 1),
    };
    const before = indexedAs(row);
    const terms = retagged(found?.terms ?? before.terms, after.tag);
    // An index entry of an earlier version stays marked for `renew`.
    const isOld = found === null && row.terms === null;
    await updateMemory(tx, row.seq, {
      ...columnsOf(after),
      ...found,
      terms: isOld ? null : terms,
    });
    if (after.content !== row.content) await forgetVector(tx, row.seq);
    if (terms !== before.terms) await reindexMemory(tx, before, terms);
    const owners = ownersOfRow(row);
    if (after.tag !== row.tag) {
      const counts = new Map([[row.tag, -1]]).set(after.tag, 1);
      for (const owner of owners) await addToCounts(tx, owner, counts);
    }
    if (after.expires_at !== null) await lowerNextExpiry(tx, owners, after.expires_at);
    return memoryView(reach.agentId, after);
  });
}

/** Deletes the vector of a memory whose text has changed; a new one is made in the background. */
async function forgetVector(tx: Transaction, seq: number): Promise<void> {
  await deleteVectors(tx, [{ seq }]);
  await updateMemory(tx, seq, { embedding: 0 });
}

async function remove(deps: MemoriesDeps, reach: Reach, id: string): Promise<void> {
  await writeTo(deps, reach, id, (tx, row) => deleteRows(tx, [row]));
}

/**
 * Records the memory changes of runs, in the transaction that completes them. Ignores changes of a deleted memory
 * or agent, and of an agent that was created after the job was accepted: that is another agent with the same id.
 */
async function keep({ agents }: MemoriesDeps, tx: Transaction, runs: readonly RunChanges[]) {
  // In a fixed order, so that two transactions cannot deadlock.
  const keyOf = (run: Owning) => `${run.organizationId}/${run.agentId}`;
  const byAgent = [...Map.groupBy(runs, keyOf)].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [, ofAgent] of byAgent) {
    const since = await lockedSince(agents, tx, ofAgent[0] as RunChanges);
    for (const run of ofAgent) if (since <= run.acceptedAt) await keepOne(tx, run);
  }
}

/** Locks the agent. Returns when it was created; infinity if it does not exist. */
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
  if (run.forgotten.length > 0) await deleteAll(tx, run, run.userId, run.forgotten);
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
      else await deleteMemories(tx, rows.map(indexedAs));
    });
  }
}

/** Deletes some of the expired memories; returns how many. */
async function expire({ database, clock, agents }: MemoriesDeps): Promise<number> {
  return await deleteExpired({ database, lock: (...rows) => agents.lock(...rows) }, clock.now());
}

/** A page of the agents that keep memories of a user, and how many. */
function listAgentsOfUser(
  { database }: MemoriesDeps,
  organizationId: string,
  userId: string,
  page: PageAsked,
) {
  return agentsOfUser(database.read, organizationId, userId, page);
}

/** All memories of a user, read lazily. */
async function* ofUser({ database }: MemoriesDeps, organizationId: string, userId: string) {
  for await (const { agentId, row } of rowsOfUser(database, organizationId, userId)) {
    yield memoryView(agentId, row);
  }
}

/** Deletes memories of a user until none is left or `isLate` returns true; returns how many. */
function eraseUser(
  { database, agents: { lock }, meaning }: MemoriesDeps,
  organizationId: string,
  userId: string,
  isLate: () => boolean,
): Promise<number> {
  meaning?.()?.clear();
  return eraseRowsOfUser({ database, lock }, { organizationId, userId }, isLate);
}

/** Deletes memories that jobs wrote, of users and of agents, until none is left or `isLate`; returns how many. */
function eraseOfJobs(
  { database, agents: { lock } }: MemoriesDeps,
  { organizationId, jobIds }: { organizationId: string; jobIds: readonly string[] },
  isLate: () => boolean,
): Promise<number> {
  return eraseRowsOfJobs({ database, lock }, { organizationId, jobIds }, isLate);
}

/** Removes the terms of deleted memories from the index until `isLate`; returns whether all are removed. */
function compactIndex({ database }: MemoriesDeps, isLate: () => boolean): Promise<boolean> {
  return compactMemoryIndex(database, isLate);
}

/** Rebuilds some of the index entries that an earlier version made; returns how many. */
async function renew({ database }: MemoriesDeps): Promise<number> {
  return await renewIndex(database);
}

/** Marks the memories of a deleted agent, which hides them from queries; `purge` deletes them. */
export const memoriesOfAgent = {
  // Processes of an earlier version do not delete memories of users, so some of a deleted agent may remain.
  begin: markRemoved,
  remove: markRemoved,
};

function columnsOf(row: VisibleMemoryRow) {
  const { content, tag, metadata, expires_at, edited, updated_at } = row;
  return { content, tag, metadata, expires_at, edited, updated_at };
}

/** A memory as runs get it. */
export function runMemoryView(row: VisibleMemoryRow) {
  return {
    id: row.id,
    content: row.content,
    tag: row.tag,
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
    user_id: row.user_id,
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
    expires_at: row.expires_at === null ? null : timestamp(row.expires_at),
  };
}

export type RunMemoryView = ReturnType<typeof runMemoryView>;

function memoryView(agent_id: string, row: VisibleMemoryRow) {
  const { id, ...others } = runMemoryView(row);
  return { id, agent_id, ...others, source: sourceOf(row) };
}

/** The run that wrote the content; null if a client wrote or changed it. */
function sourceOf({ job_id, conversation_id, step, edited }: VisibleMemoryRow) {
  if (job_id === null || edited === 1) return null;
  return { job_id, conversation_id: conversation_id ?? '', step };
}
