/**
 * Memories: texts that an agent can look up in later runs. Listing, searching, adding, changing and
 * deleting them, for clients and for runs. Each writer locks the agent first, so that writers of one
 * agent take turns and no memory outlives its agent. Another organization's memories are not found. It has more than 300
 * lines because all verbs on memories are here.
 */
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { type Clock, timestamp } from '../../kernel/clock.ts';
import { notFound } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import type { Agents } from '../agents/agents.ts';
import type { Context } from '../context/context.ts';
import type { Owning } from '../embeddings/request.ts';
import { deleteExpired } from './expiry.ts';
import { checkBytes, type MemoryFields } from './fields.ts';
import { FrequentTerms } from './frequent-terms.ts';
import { reindexMemory } from './index.store.ts';
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
import { markRemoved, type OfUser, ownersOf, ownersSeen } from './owners.ts';
import { profilesOfUser } from './profiles.store.ts';
import { keepProfile, profileBytesOf, profileView } from './profiles.ts';
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
import { countOf, mayHaveExpired, type SearchRequest, search } from './search.ts';
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

/** The agent, and which of its memories the client reaches: all, or only the agent's own when `userId` is null. */
export interface Reach extends Owning {
  readonly userId?: null;
}

/** The filters of a list. */
interface ListFilter {
  readonly q?: string | undefined;
  /** Matches exactly. */
  readonly tag?: string | undefined;
  /** Null for the agent's own memories only. */
  readonly userId?: OfUser;
}

/** The memories of the agents of all organizations. */
export class Memories {
  readonly database: Database;
  readonly clock: Clock;
  readonly agents: Agents;
  /** Semantic search; null when memories have no vectors. */
  readonly meaning: () => Meaning | null;
  readonly frequent: FrequentTerms;

  constructor(
    { database, clock }: Context,
    agents: Agents,
    meaning: () => Meaning | null = () => null,
  ) {
    this.database = database;
    this.clock = clock;
    this.agents = agents;
    this.meaning = meaning;
    this.frequent = new FrequentTerms(clock);
  }

  /** `404 not_found` for an agent that does not exist. */
  async findAgent(owning: Owning): Promise<void> {
    await this.agents.find(owning.organizationId, owning.agentId);
  }

  /** `404 not_found` for a memory, or an agent, that does not exist. */
  async find(reach: Reach, id: string): Promise<void> {
    await this.findAgent(reach);
    await this.#findRow(reach, id);
  }

  /** The memory, or `404 not_found`. */
  async #findRow(reach: Reach, id: string) {
    const { clock } = this;
    const { read } = this.database;
    const owners = isId(id) ? await ownersSeen(read, reach, reach.userId) : [];
    const row = owners.length > 0 && (await findMemory(read, owners, id, clock.now()));
    if (!row) throw notFound('Memory');
    return row;
  }

  /** A page: newest first, or with `q` best first. */
  async list(owning: Owning, { q, tag, userId }: ListFilter, page: PageAsked) {
    const { clock, frequent, meaning } = this;
    const { read } = this.database;
    const owners = await ownersOf(read, owning, userId);
    if (owners.length === 0) return { memories: [], total: 0, next: null };
    const seen = { owners, tag, now: clock.now() };
    const { rows, total, next } =
      q === undefined
        ? await listNewest(read, seen, page)
        : await search(
            read,
            { ...seen, frequent, query: queryOf(q) },
            meaning()?.nearest(owning, seen, q) ?? [],
            page,
          );
    return { memories: rows.map((row) => memoryView(owning.agentId, row)), total, next };
  }

  async get(reach: Reach, id: string) {
    return memoryView(reach.agentId, await this.#findRow(reach, id));
  }

  /** Adds a memory of the agent's own, or of a user. */
  async create(
    owning: Owning,
    fields: MemoryFields & { content: string },
    userId: string | null = null,
  ) {
    const { database, clock, agents } = this;
    const memory = newMemory(fields, { now: clock.now(), userId });
    await database.write(async (tx) => {
      await agents.lock(tx, owning.organizationId, owning.agentId);
      await insertAll(tx, owning, [memory]);
    });
    return memoryView(owning.agentId, memory);
  }

  /** Runs `change` on an existing memory, while the agent is locked against other writers. */
  #writeTo<T>(
    reach: Reach,
    id: string,
    change: (tx: Transaction, row: LockedRow) => Promise<T>,
  ): Promise<T> {
    const { database, clock, agents } = this;
    return database.write(async (tx) => {
      await agents.lock(tx, reach.organizationId, reach.agentId);
      const owners = isId(id) ? await ownersSeen(tx, reach, reach.userId) : [];
      const row = owners.length > 0 && (await lockMemory(tx, owners, id, clock.now()));
      if (!row) throw notFound('Memory');
      return await change(tx, row);
    });
  }

  /** Changes the given fields. */
  async update(reach: Reach, id: string, fields: MemoryFields) {
    checkBytes(fields);
    const { content, tag, metadata, expires_at } = fields;
    // Outside of the transaction, which blocks other writers.
    const words = content === undefined ? null : readWords(content);
    const found = words && columnsOfWords(words, tag ?? '');
    return await this.#writeTo(reach, id, async (tx, row) => {
      const after: VisibleMemoryRow = {
        ...row,
        content: content ?? row.content,
        tag: tag ?? row.tag,
        metadata: metadata === undefined ? row.metadata : JSON.stringify(metadata),
        expires_at: expires_at === undefined ? row.expires_at : expires_at,
        edited: content === undefined || content === row.content ? row.edited : 1,
        // Strictly increasing, even if the clock was set back.
        updated_at: Math.max(this.clock.now(), row.updated_at + 1),
      };
      const before = indexedAs(row);
      const terms = retagged(found?.terms ?? before.terms, after.tag);
      await updateMemory(tx, row.seq, { ...columnsOf(after), ...found, terms });
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

  async remove(reach: Reach, id: string): Promise<void> {
    await this.#writeTo(reach, id, (tx, row) => deleteRows(tx, [row]));
  }

  /**
   * Records the memory changes of runs, in the transaction that completes them. Ignores changes of a deleted memory
   * or agent, and of an agent that was created after the job was accepted: that is another agent with the same id.
   */
  async keep(tx: Transaction, runs: readonly RunChanges[]) {
    // In a fixed order, so that two transactions cannot deadlock.
    const keyOf = (run: Owning) => `${run.organizationId}/${run.agentId}`;
    const byAgent = [...Map.groupBy(runs, keyOf)].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [, ofAgent] of byAgent) {
      const [{ organizationId, agentId }] = ofAgent as [RunChanges];
      const agent = await this.agents.lockIfPresent(tx, organizationId, agentId);
      const since = agent?.created_at ?? Number.POSITIVE_INFINITY;
      for (const run of ofAgent) {
        if (since > run.acceptedAt || agent === undefined) continue;
        await keepOne(tx, run);
        await this.#keepProfile(tx, run, profileBytesOf(agent));
      }
    }
  }

  async #keepProfile(
    tx: Transaction,
    { organizationId, agentId, userId, profile }: RunChanges,
    maxBytes: number,
  ) {
    if (profile === undefined || userId === null) return;
    const of = { organizationId, agentId, userId };
    await keepProfile(tx, of, profile, { maxBytes, now: this.clock.now() });
  }

  /** Deletes some of the marked memories, in small transactions that delay no other writer for long. */
  async purge(): Promise<void> {
    const { database } = this;
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
  async expire(): Promise<number> {
    return await deleteExpired(this.database, this.agents, this.clock.now());
  }

  /** A page of the agents that keep memories of a user, and how many. */
  listAgentsOfUser(organizationId: string, userId: string, page: PageAsked) {
    return agentsOfUser(this.database.read, organizationId, userId, page);
  }

  /** All memories of a user, read lazily. */
  async *ofUser(organizationId: string, userId: string) {
    for await (const { agentId, row } of rowsOfUser(this.database, organizationId, userId)) {
      yield memoryView(agentId, row);
    }
  }

  /** All profiles of a user. */
  async profilesOfUser(organizationId: string, userId: string) {
    const rows = await profilesOfUser(this.database.read, organizationId, userId);
    return rows.map(({ agent_id, ...row }) => profileView(agent_id.replace('/', ''), userId, row));
  }

  /** Deletes memories and profiles of a user until none is left or `isLate` returns true; returns how many. */
  eraseUser(organizationId: string, userId: string, isLate: () => boolean): Promise<number> {
    const { database, agents, meaning } = this;
    meaning()?.clear();
    return eraseRowsOfUser(database, agents, { organizationId, userId }, isLate);
  }

  /** Deletes memories that jobs wrote, of users and of agents, until none is left or `isLate`; returns how many. */
  eraseOfJobs(
    { organizationId, jobIds }: { organizationId: string; jobIds: readonly string[] },
    isLate: () => boolean,
  ): Promise<number> {
    return eraseRowsOfJobs(this.database, this.agents, { organizationId, jobIds }, isLate);
  }

  /** Removes the terms of deleted memories from the index until `isLate`; returns whether all are removed. */
  compactIndex(isLate: () => boolean): Promise<boolean> {
    return compactMemoryIndex(this.database, isLate);
  }
}

async function listNewest(
  read: Database['read'],
  { tag, ...seen }: Pick<SearchRequest, 'owners' | 'tag' | 'now'>,
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

/** Deletes the vector of a memory whose text has changed; a new one is made in the background. */
async function forgetVector(tx: Transaction, seq: number): Promise<void> {
  await deleteVectors(tx, [{ seq }]);
  await updateMemory(tx, seq, { embedding: 0 });
}

async function keepOne(tx: Transaction, run: RunChanges): Promise<void> {
  if (run.forgotten.length > 0) await deleteAll(tx, run, run.userId, run.forgotten);
  if (run.remembered.length > 0) await insertAll(tx, run, run.remembered);
}

/** Marks the memories of a deleted agent, which hides them from queries; `purge` deletes them. */
export const memoriesOfAgent = { remove: markRemoved };

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
function sourceOf({ job_id, conversation_id, message_id, step, edited }: VisibleMemoryRow) {
  if (job_id === null || edited === 1) return null;
  const formedOf = message_id !== null && { message_id };
  return { job_id, conversation_id: conversation_id ?? '', step, ...formedOf };
}
