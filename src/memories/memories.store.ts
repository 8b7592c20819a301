/** Every query on memories and their index. Those on owners are in `owners.store.ts`, searches in `search.store.ts`. */
import { type Selectable, sql } from 'kysely';
import type { Dialect, Handle, Transaction } from '../database/database.ts';
import { idIn, listValue } from '../database/ids-in.ts';
import { locked } from '../database/locked.ts';
import { bytesOf, cutPage, type PageAsked } from '../database/page-bytes.ts';
import { firstRow, statement } from '../database/statement.ts';
import type { MemoriesTable } from '../database/tables.ts';

export type MemoryRow = Selectable<MemoriesTable>;

/** A memory as it is shown. */
export type VisibleMemoryRow = Omit<MemoryRow, 'seq' | 'owner' | 'words' | 'word_count' | 'terms'>;

/** A memory to record. */
type RecordedMemory = Omit<MemoryRow, 'seq' | 'terms'> & { readonly terms: string };

const visibleColumns = ['id', 'tag', 'content', 'metadata', 'created_at', 'updated_at'] as const;

/** What a memory is found by. */
const foundBy = ['seq', 'tag', 'words', 'terms'] as const;

/** Up to `max` memories of an owner, with what they are found by. */
export function someMemories(tx: Transaction, owner: number, max: number) {
  return tx.kysely
    .selectFrom('memories')
    .select(foundBy)
    .where('owner', '=', owner)
    .limit(max)
    .execute();
}

const deleteBySeq = statement<{ seq: number }>()((db, p) =>
  db.deleteFrom('memories').where('seq', '=', p('seq')),
);
export const findMemory = firstRow<{ owner: number; id: string }>()((db, p) =>
  db
    .selectFrom('memories')
    .select(visibleColumns)
    .where('owner', '=', p('owner'))
    .where('id', '=', p('id')),
);

/** How many words a memory has. */
export const sizeOfMemory = firstRow<{ owner: number; id: string }>()((db, p) =>
  db
    .selectFrom('memories')
    .select('word_count')
    .where('owner', '=', p('owner'))
    .where('id', '=', p('id')),
);

/** What memories of these ids are found by, in the order of the ids; those that are not there are left out. */
export function memoriesById(tx: Transaction, owner: number, ids: readonly string[]) {
  return tx.kysely
    .selectFrom('memories')
    .select([...foundBy, 'id'])
    .where('owner', '=', owner)
    .where(idIn(tx.dialect, listValue(ids)))
    .orderBy('id')
    .execute();
}

interface MemoryFilter {
  readonly tag?: string | undefined;
  readonly without?: readonly string[];
}

/** The ids of a page, newest first; of one tag when it is given, and without some ids. */
function idsOfPage(
  db: Handle,
  owner: number,
  { tag, without = [] }: MemoryFilter,
  page: PageAsked,
) {
  let ids = db.kysely
    .selectFrom('memories')
    .select('id')
    .where('owner', '=', owner)
    .orderBy('id', 'desc')
    .limit(page.limit)
    .offset(page.offset);
  if (tag !== undefined) ids = ids.where('tag', '=', tag);
  if (without.length > 0) {
    ids = ids.where(sql<boolean>`not (${idIn(db.dialect, listValue(without))})`);
  }
  return ids;
}

/** The memories of a page, newest first. What a page skips is skipped in the index: its rows are not read. */
function ofPage(db: Handle, owner: number, filter: MemoryFilter, page: PageAsked) {
  return db.kysely
    .selectFrom('memories')
    .where('owner', '=', owner)
    .where('id', 'in', idsOfPage(db, owner, filter, page))
    .orderBy('id', 'desc');
}

/** A page, newest first. */
export function listMemories(db: Handle, owner: number, filter: MemoryFilter, page: PageAsked) {
  return ofPage(db, owner, filter, page).select(visibleColumns).execute();
}

/** As `listMemories`, with the offset at which to go on where the page was cut for its bytes. */
export async function listMemoriesWithinBytes(
  db: Handle,
  owner: number,
  filter: MemoryFilter,
  page: PageAsked,
) {
  const sizes = await ofPage(db, owner, filter, page)
    .select(bytesOf('content', 'metadata').as('bytes'))
    .execute();
  const { rows, next } = cutPage(sizes, page);
  const fitting = { limit: rows.length, offset: page.offset };
  return { rows: await listMemories(db, owner, filter, fitting), next };
}

/** Records memories of one owner; counts are the caller's. */
export async function insertMemories(
  tx: Transaction,
  owner: number,
  memories: readonly RecordedMemory[],
): Promise<void> {
  await tx.insert('memories', memories);
  const terms = new Map(memories.map(({ id, terms }) => [id, terms]));
  const rows = await memoriesById(tx, owner, [...terms.keys()]);
  await indexMemories(
    tx,
    rows.map(({ seq, id }) => ({ seq, owner, terms: terms.get(id) ?? '' })),
  );
}

/** A memory, and what it is found by. */
export type LockedRow = VisibleMemoryRow & Pick<MemoryRow, 'seq' | 'words' | 'terms'>;

/** Up to `max` memories of all owners that were recorded after `seq`, in that order. */
export function memoriesAfter(tx: Transaction, seq: number, max: number) {
  return tx.kysely
    .selectFrom('memories')
    .select([...foundBy, 'owner'])
    .where('seq', '>', seq)
    .orderBy('seq')
    .limit(max)
    .execute();
}

/** A memory whose entry in the index is of an earlier version. */
export const findWithoutTerms = firstRow<object>()((db) =>
  db.selectFrom('memories').select('seq').where('terms', 'is', null).limit(sql.lit(1)),
);

/**
 * Up to `max` memories of all owners whose entry in the index is of an earlier version, the newest first; without
 * those that another transaction is changing.
 */
export function memoriesWithoutTerms(tx: Transaction, max: number) {
  const query = tx.kysely
    .selectFrom('memories')
    .select([...foundBy, 'owner', 'content'])
    .where('terms', 'is', null)
    .orderBy('seq', 'desc')
    .limit(max);
  return locked(tx.dialect, query, (unlocked) => unlocked.forUpdate().skipLocked()).execute();
}

/** Adds memories to the index that are in no index yet. */
export async function indexMemories(
  tx: Transaction,
  memories: readonly (Indexed & { readonly owner: number })[],
): Promise<void> {
  await tx.insert(
    'memory_index',
    memories.map(({ seq, owner, terms }) => ({
      rowid: seq,
      tokens: tokensText(tx.dialect, owner, terms),
    })),
  );
}

/** A memory that is about to be changed or deleted, locked where several could be at it. */
export function lockMemory(tx: Transaction, owner: number, id: string) {
  const query = tx.kysely
    .selectFrom('memories')
    .select([...visibleColumns, 'seq', 'words', 'terms'])
    .where('owner', '=', owner)
    .where('id', '=', id);
  return locked(tx.dialect, query).executeTakeFirst();
}

/** An entry of the index. */
export interface Indexed {
  readonly seq: number;
  /** All that it is found by: what leaves the index has to be named exactly. */
  readonly terms: string;
}

export async function updateMemory(
  tx: Transaction,
  seq: number,
  columns: Partial<MemoryRow>,
): Promise<void> {
  await tx.kysely.updateTable('memories').set(columns).where('seq', '=', seq).execute();
}

export async function reindexMemory(
  tx: Transaction,
  owner: number,
  before: Indexed,
  terms: string,
): Promise<void> {
  await unindex(tx, owner, [before]);
  await indexMemories(tx, [{ seq: before.seq, owner, terms }]);
}

export async function deleteMemories(
  tx: Transaction,
  owner: number,
  memories: readonly Indexed[],
): Promise<void> {
  await tx.each(deleteBySeq, memories);
  await unindex(tx, owner, memories);
}

const deleteIndexed = statement<{ seq: number; tokens: string }>()((db, p, dialect) =>
  dialect === 'sqlite'
    ? db
        .insertInto('memory_index')
        .values({ memory_index: sql.lit('delete'), rowid: p('seq'), tokens: p('tokens') })
    : db.deleteFrom('memory_index').where('rowid', '=', p('seq')),
);

function unindex(tx: Transaction, owner: number, memories: readonly Indexed[]): Promise<void> {
  return tx.each(
    deleteIndexed,
    memories.map(({ seq, terms }) => ({ seq, tokens: tokensText(tx.dialect, owner, terms) })),
  );
}

/** What the index is given: terms, as `termsText` writes them, each under its owner. */
function tokensText(dialect: Dialect, owner: number, terms: string): string {
  if (dialect === 'sqlite') return `${owner}${terms.replaceAll(' ', ` ${owner}`)}`;
  // Terms have no character that would have to be escaped for PostgreSQL.
  return `'${owner}${terms.replaceAll(' ', `' '${owner}`)}'`;
}
