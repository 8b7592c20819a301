/**
 * Recording and deleting memories inside a transaction that holds their agent: the rows, what the
 * index knows of them, and the counts, always together.
 */
import type { Transaction } from '../database/database.ts';
import { newId } from '../kernel/ids.ts';
import { checkBytes, defaultTag, type MemoryFields } from './fields.ts';
import {
  addToCounts,
  deleteMemories,
  findOwner,
  type Indexed,
  type IndexedMemory,
  insertMemories,
  insertOwner,
  type LockedRow,
  lockMemory,
} from './memories.store.ts';
import { joinWords, splitWords } from './relevance.ts';
import { termsOf } from './terms.ts';
import { wordsOf } from './words.ts';

/** Whose memories. */
export interface Owning {
  readonly organizationId: string;
  readonly agentId: string;
}

/** A memory that is complete but not recorded. */
export interface NewMemory {
  readonly id: string;
  readonly content: string;
  readonly tag: string;
  /** JSON object. */
  readonly metadata: string;
  readonly created_at: number;
  readonly words: readonly string[];
}

/** What a run has done to its agent's memories. */
export interface MemoryChanges {
  readonly remembered: readonly NewMemory[];
  /** Ids. */
  readonly forgotten: readonly string[];
}

/** Complete, with an id of its own. Throws `400 validation_error` for what is too long. */
export function newMemory(fields: MemoryFields & { content: string }, now: number): NewMemory {
  checkBytes(fields);
  const { content, tag = defaultTag, metadata = {} } = fields;
  return {
    id: newId(),
    content,
    tag,
    metadata: JSON.stringify(metadata),
    created_at: now,
    words: wordsOf(content),
  };
}

/** The agent is held. */
export async function insertAll(
  tx: Transaction,
  { organizationId, agentId }: Owning,
  memories: readonly NewMemory[],
): Promise<void> {
  const owner =
    (await findOwner(tx, organizationId, agentId))?.id ??
    (await insertOwner(tx, organizationId, agentId));
  const indexed: IndexedMemory[] = memories.map(({ words, ...memory }) => ({
    row: { ...memory, owner, updated_at: memory.created_at, ...wordColumns(words) },
    terms: termsOf(owner, words, memory.tag),
  }));
  await insertMemories(tx, owner, indexed);
  await addToCounts(tx, owner, countedBy(memories, 1));
}

/** The agent is held. What is not there is passed over. */
export async function deleteAll(
  tx: Transaction,
  { organizationId, agentId }: Owning,
  ids: readonly string[],
): Promise<void> {
  const owner = await findOwner(tx, organizationId, agentId);
  if (owner === undefined) return;
  const deleted: LockedRow[] = [];
  for (const id of ids) {
    const row = await lockMemory(tx, owner.id, id);
    if (row === undefined) continue;
    deleted.push(row);
  }
  await deleteMemories(
    tx,
    deleted.map((row) => indexedAs(owner.id, row)),
  );
  await addToCounts(tx, owner.id, countedBy(deleted, -1));
}

/** What the index has of a memory: by the words that are stored, whatever wordsOf says today. */
export function indexedAs(owner: number, row: Pick<LockedRow, 'seq' | 'tag' | 'words'>): Indexed {
  return { seq: row.seq, terms: termsOf(owner, splitWords(row.words), row.tag) };
}

function countedBy(memories: readonly { tag: string }[], by: 1 | -1): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { tag } of memories) counts.set(tag, (counts.get(tag) ?? 0) + by);
  return counts;
}

export function wordColumns(words: readonly string[]): { words: string; word_count: number } {
  return { words: joinWords(words), word_count: words.length };
}
