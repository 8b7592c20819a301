/**
 * Recording and deleting memories inside a transaction that holds their agent: the rows, what the
 * index knows of them, and the counts, always together.
 */
import type { Transaction } from '../database/database.ts';
import { newId } from '../kernel/ids.ts';
import { checkBytes, defaultTag, type MemoryFields } from './fields.ts';
import {
  deleteMemories,
  type Indexed,
  insertMemories,
  type LockedRow,
  type MemoryRow,
  memoriesById,
} from './memories.store.ts';
import { addToCounts, findOwner, insertOwner } from './owners.store.ts';
import { splitWords } from './relevance.ts';
import { columnsOfWords, termsOfWords } from './terms.ts';
import { readWords } from './words.ts';

/** Whose memories. */
export interface Owning {
  readonly organizationId: string;
  readonly agentId: string;
}

/**
 * A memory that is complete but not recorded. Its words and terms, which take too long to make for a transaction, are
 * one text each: an array costs ten times that.
 */
export type NewMemory = Readonly<Omit<MemoryRow, 'seq' | 'owner' | 'updated_at' | 'terms'>> & {
  readonly terms: string;
};

/** What a run has done to its agent's memories. */
export interface MemoryChanges {
  readonly remembered: readonly NewMemory[];
  /** Ids. */
  readonly forgotten: readonly string[];
  /** What recording this takes, as a part of one write: 1 is as much as one should hold. */
  readonly share: number;
}

/** The same, with what tells whether the agent that is there is still the one of the run. */
export interface RunChanges extends Owning, MemoryChanges {
  /** When the job of the run was accepted. */
  readonly acceptedAt: number;
}

/** A complete memory with a new id. Throws `400 validation_error` when a field is too long. */
export function newMemory(
  fields: MemoryFields & { content: string },
  now: number,
  id = newId(),
): NewMemory {
  checkBytes(fields);
  const { content, tag = defaultTag, metadata = {} } = fields;
  return {
    id,
    content,
    tag,
    metadata: JSON.stringify(metadata),
    created_at: now,
    ...columnsOfWords(readWords(content), tag),
  };
}

/** The agent is held. */
export async function insertAll(
  tx: Transaction,
  owning: Owning,
  memories: readonly NewMemory[],
): Promise<void> {
  const owner =
    (await findOwner(tx, owning))?.id ??
    (await insertOwner(tx, owning.organizationId, owning.agentId));
  const rows = memories.map((memory) => ({ ...memory, owner, updated_at: memory.created_at }));
  await insertMemories(tx, owner, rows);
  await addToCounts(tx, owner, countedBy(memories, 1));
}

/** The agent is locked. Unknown ids are skipped. */
export async function deleteAll(
  tx: Transaction,
  owning: Owning,
  ids: readonly string[],
): Promise<void> {
  const owner = await findOwner(tx, owning);
  if (owner === undefined) return;
  const rows = await memoriesById(tx, owner.id, ids);
  await deleteMemories(tx, owner.id, rows.map(indexedAs));
  await addToCounts(tx, owner.id, countedBy(rows, -1));
}

/** The index entry of a memory, by what is stored: what `termsText` makes of the content may have changed since. */
export function indexedAs(row: Pick<LockedRow, 'seq' | 'tag' | 'words' | 'terms'>): Indexed {
  return { seq: row.seq, terms: row.terms ?? termsOfWords(splitWords(row.words), row.tag) };
}

function countedBy(memories: readonly { tag: string }[], by: 1 | -1): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { tag } of memories) counts.set(tag, (counts.get(tag) ?? 0) + by);
  return counts;
}
