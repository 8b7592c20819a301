/**
 * Records and deletes memories inside a transaction that has locked their agent: rows, index entries and counts,
 * always together.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import { newId } from '../../kernel/ids.ts';
import type { Owning } from '../embeddings/request.ts';
import { checkBytes, defaultTag, type MemoryFields } from './fields.ts';
import type { Indexed } from './index.store.ts';
import {
  deleteMemories,
  insertMemories,
  type LockedRow,
  type MemoryRow,
  memoriesById,
  ownersIn,
  type RecordedMemory,
} from './memories.store.ts';
import { addToCounts, lowerNextExpiry } from './owners.store.ts';
import { type OfUser, ownerFor, ownersSeen } from './owners.ts';
import type { ProfileOfRun } from './profile-merge.ts';
import { columnsOfWords, indexedTerms } from './terms.ts';
import { readWords } from './words.ts';

/**
 * A complete memory that is not recorded yet. Its words and terms are computed before the transaction. Each is one text
 * instead of an array, which would take ten times the memory.
 */
export type NewMemory = Readonly<RecordedMemory>;

/** The run that wrote a memory; all fields are null if a client wrote it. */
export type Source = Pick<MemoryRow, 'job_id' | 'conversation_id' | 'step' | 'message_id'> & {
  /** The user for whom the run ran. */
  readonly of_user: string | null;
};

const ofClient: Source = {
  job_id: null,
  conversation_id: null,
  message_id: null,
  step: null,
  of_user: null,
};

/** The changes of a run to its agent's memories. */
export interface MemoryChanges {
  readonly remembered: readonly NewMemory[];
  /** Ids. */
  readonly forgotten: readonly string[];
  /** What the run makes of the profile of its user. */
  readonly profile?: ProfileOfRun | undefined;
  /** The cost of recording them, as a share of one transaction; 1 fills a transaction. */
  readonly share: number;
}

/** The changes with their agent, and the time that tells whether the agent was replaced since. */
export interface RunChanges extends Owning, MemoryChanges {
  /** The user of the run; it sees no memories of other users. */
  readonly userId: string | null;
  /** When the job of the run was accepted. */
  readonly acceptedAt: number;
}

/** The owner, the source and the time of a new memory. */
export interface NewMemoryOptions {
  readonly now: number;
  readonly userId?: string | null;
  readonly source?: Source;
  readonly id?: string;
}

/** A complete memory with a new id. Throws `400 validation_error` when a field is too long. */
export function newMemory(
  fields: MemoryFields & { content: string },
  { now, userId = null, source = ofClient, id = newId() }: NewMemoryOptions,
): NewMemory {
  checkBytes(fields);
  const { content, tag = defaultTag, metadata = {}, expires_at = null } = fields;
  return {
    id,
    content,
    tag,
    metadata: JSON.stringify(metadata),
    created_at: now,
    updated_at: now,
    user_id: userId,
    expires_at,
    job_id: source.job_id,
    conversation_id: source.conversation_id,
    message_id: source.message_id,
    step: source.step,
    written_for: userId === null ? source.of_user : null,
    edited: 0,
    ...columnsOfWords(readWords(content), tag),
  };
}

/** Records memories of one owner. The caller has locked the agent. */
export async function insertAll(
  tx: Transaction,
  owning: Owning,
  memories: readonly NewMemory[],
): Promise<void> {
  for (const [userId, ofUser] of Map.groupBy(memories, (memory) => memory.user_id)) {
    const owner = await ownerFor(tx, owning, userId);
    const owners = ownersIn(owner);
    await insertMemories(tx, owner, ofUser);
    const counts = countedBy(ofUser, 1);
    for (const one of owners) await addToCounts(tx, one, counts);
    const ends = ofUser.flatMap(({ expires_at }) => expires_at ?? []);
    if (ends.length > 0) await lowerNextExpiry(tx, owners, Math.min(...ends));
  }
}

/** Deletes memories by id. Skips unknown ids and memories of other users. The caller has locked the agent. */
export async function deleteAll(
  tx: Transaction,
  owning: Owning,
  userId: OfUser,
  ids: readonly string[],
): Promise<void> {
  const owners = await ownersSeen(tx, owning, userId);
  if (owners.length === 0) return;
  await deleteRows(tx, await memoriesById(tx, owners, ids));
}

/** Deletes memories with their index entries and counts. The caller has locked the agent. */
export async function deleteRows(tx: Transaction, rows: readonly Indexable[]): Promise<void> {
  await deleteMemories(tx, rows.map(indexedAs));
  const byOwner = Map.groupBy(
    rows.flatMap(({ tag, ...row }) => ownersOfRow(row).map((owner) => ({ owner, tag }))),
    ({ owner }) => owner,
  );
  for (const [owner, of] of byOwner) await addToCounts(tx, owner, countedBy(of, -1));
}

type Indexable = Pick<LockedRow, 'seq' | 'owner' | 'together' | 'tag' | 'words' | 'terms'>;

export const ownersOfRow = ({ owner, together }: Pick<LockedRow, 'owner' | 'together'>) =>
  ownersIn({ id: owner, together });

/** The index entry of a memory, from the stored terms: `termsText` may have changed since it was indexed. */
export function indexedAs(row: Indexable): Indexed {
  return {
    seq: row.seq,
    owners: ownersOfRow(row),
    terms: indexedTerms(row.terms, row.words, row.tag),
  };
}

function countedBy(memories: readonly { tag: string }[], by: 1 | -1): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { tag } of memories) counts.set(tag, (counts.get(tag) ?? 0) + by);
  return counts;
}
