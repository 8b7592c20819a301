/**
 * Every query on memories. Those on their index are in `index.store.ts`, on owners in `owners.store.ts`, searches in
 * `search.store.ts`. It has more than 300 lines because the queries are short and share their columns and filters.
 */
import { type ExpressionBuilder, type Selectable, sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn, isIn, listValue } from '../../adapters/database/ids-in.ts';
import { locked } from '../../adapters/database/locked.ts';
import { bytesOf, cutPage, type PageAsked } from '../../adapters/database/page-bytes.ts';
import { statement } from '../../adapters/database/statement.ts';
import type { MemoriesTable, Tables } from '../../adapters/database/tables.ts';
import { type Indexed, indexMemories, unindex } from './index.store.ts';
import { type Owner, type OwnerRow, ownerKinds } from './owners.store.ts';
import { deleteVectors } from './vectors.store.ts';

/** Expired memories that are excluded by id until the background job has deleted them, some seconds later. */
const expiredMax = 10_000;

export type MemoryRow = Selectable<MemoriesTable>;

/** A memory as the API shows it. */
export type VisibleMemoryRow = Pick<MemoryRow, (typeof visibleColumns)[number]>;

/** A memory to record. */
export type RecordedMemory = Omit<
  MemoryRow,
  'seq' | 'terms' | 'owner' | 'together' | 'embedding'
> & {
  readonly terms: string;
};

export const visibleColumns = [
  'id',
  'tag',
  'content',
  'metadata',
  'created_at',
  'updated_at',
  'user_id',
  'job_id',
  'conversation_id',
  'message_id',
  'step',
  'expires_at',
  'written_for',
  'edited',
] as const;

/** The columns that the index is made of. */
const foundBy = ['seq', 'owner', 'together', 'tag', 'words', 'terms'] as const;

/** The owners whose memories are searched. */
type Seen = readonly Pick<OwnerRow, 'id' | 'kind'>[];

/** A condition: the memory belongs to one of the owners. */
function ofOwners(owners: Seen) {
  const ids = (isTogether: boolean) =>
    owners.filter(({ kind }) => (kind === ownerKinds.together) === isTogether).map(({ id }) => id);
  return ({ eb, or }: ExpressionBuilder<Tables, 'memories'>) => {
    const [own, together] = [ids(false), ids(true)];
    return or([
      ...(own.length > 0 ? [eb('owner', 'in', own)] : []),
      ...(together.length > 0 ? [eb('together', 'in', together)] : []),
    ]);
  };
}

/** Up to `max` memories of an owner, with their indexed columns. */
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
/** A memory; undefined if none of the owners has it or it has expired. */
export function findMemory(db: Handle, owners: Seen, id: string, now: number) {
  return db.kysely
    .selectFrom('memories')
    .select([...visibleColumns, 'word_count'])
    .where(ofOwners(owners))
    .where('id', '=', id)
    .where(isCurrent(now))
    .executeTakeFirst();
}

/** The indexed columns of the memories of these ids, in the order of the ids; unknown ids are left out. */
export function memoriesById(tx: Transaction, owners: Seen, ids: readonly string[]) {
  return tx.kysely
    .selectFrom('memories')
    .select([...foundBy, 'id'])
    .where(ofOwners(owners))
    .where(idIn(tx.dialect, listValue(ids)))
    .orderBy('id')
    .execute();
}

const isCurrent =
  (now: number) =>
  ({ eb, or }: ExpressionBuilder<Tables, 'memories'>) =>
    or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]);

interface MemoryFilter {
  readonly tag?: string | undefined;
  readonly without?: readonly string[];
  /** Leaves out memories that have expired by this time; null if none of the owners has expired ones. */
  readonly now: number | null;
}

/** The ids of an owner's newest memories, optionally of one tag, and without some ids. */
function newestIds(
  db: Handle,
  { id, kind }: Seen[number],
  { tag, without = [], now }: MemoryFilter,
) {
  const column = kind === ownerKinds.together ? 'together' : 'owner';
  let ids = db.kysely
    .selectFrom('memories')
    .select('id')
    .where(column, '=', id)
    .orderBy('id', 'desc');
  if (tag !== undefined) ids = ids.where('tag', '=', tag);
  if (now !== null) ids = ids.where(isCurrent(now));
  if (without.length > 0) {
    ids = ids.where(sql<boolean>`not (${idIn(db.dialect, listValue(without))})`);
  }
  return ids;
}

/** The ids of a page, newest first. */
function idsOfPage(db: Handle, owners: Seen, filter: MemoryFilter, { limit, offset }: PageAsked) {
  const [first, ...others] = owners.map((owner) => newestIds(db, owner, filter));
  if (first === undefined) throw new Error('no owner is seen');
  if (others.length === 0) return first.limit(limit).offset(offset);
  // Reading the newest of each owner from its index is enough: the page is among them.
  const newest = (one: typeof first) =>
    db.kysely.selectFrom(one.limit(limit + offset).as('newest')).select('id');
  const all = others.reduce((union, one) => union.unionAll(newest(one)), newest(first));
  return db.kysely
    .selectFrom(all.as('found'))
    .select('id')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset);
}

/** The memories of a page, newest first. Skips the rows before the page in the index, without reading them. */
function ofPage(db: Handle, owners: Seen, filter: MemoryFilter, page: PageAsked) {
  return db.kysely
    .selectFrom('memories')
    .where(ofOwners(owners))
    .where('id', 'in', idsOfPage(db, owners, filter, page))
    .orderBy('id', 'desc');
}

/** A page, newest first. */
export async function listMemories(
  db: Handle,
  owners: Seen,
  filter: MemoryFilter,
  page: PageAsked,
): Promise<VisibleMemoryRow[]> {
  if (owners.length === 0) return [];
  return await ofPage(db, owners, filter, page).select(visibleColumns).execute();
}

/** Like `listMemories`, with the offset of the next page when this one was cut because of its size in bytes. */
export async function listMemoriesWithinBytes(
  db: Handle,
  owners: Seen,
  filter: MemoryFilter,
  page: PageAsked,
) {
  if (owners.length === 0) return { rows: [], next: null };
  const sizes = await ofPage(db, owners, filter, page)
    .select(bytesOf('content', 'metadata').as('bytes'))
    .execute();
  const { rows, next } = cutPage(sizes, page);
  const fitting = { limit: rows.length, offset: page.offset };
  return { rows: await listMemories(db, owners, filter, fitting), next };
}

/** The `seq` of the owners' memories that have expired and are not deleted yet, optionally of one tag. */
export async function expiredMemories(
  db: Handle,
  owners: Seen,
  now: number,
  tag?: string,
): Promise<number[]> {
  let query = db.kysely
    .selectFrom('memories')
    .select('seq')
    .where(ofOwners(owners))
    .where('expires_at', '<=', now)
    .limit(expiredMax);
  if (tag !== undefined) query = query.where('tag', '=', tag);
  return (await query.execute()).map(({ seq }) => Number(seq));
}

/** Up to `max` expired memories of an owner, with their indexed columns. */
export function expiredOf(tx: Transaction, owner: number, now: number, max: number) {
  return tx.kysely
    .selectFrom('memories')
    .select(foundBy)
    .where('owner', '=', owner)
    .where('expires_at', '<=', now)
    .limit(max)
    .execute();
}

/** When the next memory of an owner, or of all users together, expires; null if none does. */
export async function nextExpiry(tx: Transaction, owner: number): Promise<number | null> {
  const next = (column: 'owner' | 'together') =>
    tx.kysely
      .selectFrom('memories')
      .select('expires_at')
      .where(column, '=', owner)
      .where('expires_at', 'is not', null)
      .orderBy('expires_at')
      .limit(1)
      .executeTakeFirst();
  const found = (await next('owner')) ?? (await next('together'));
  return found?.expires_at ?? null;
}

/** Records memories of one owner; the caller updates the counts. */
export async function insertMemories(
  tx: Transaction,
  owner: Owner,
  memories: readonly RecordedMemory[],
): Promise<void> {
  const rows = memories.map((one) => ({ ...one, owner: owner.id, together: owner.together }));
  await tx.insert('memories', rows);
  const terms = new Map(memories.map(({ id, terms }) => [id, terms]));
  const own = [{ id: owner.id, kind: ownerKinds.agent }];
  const recorded = await memoriesById(tx, own, [...terms.keys()]);
  await indexMemories(
    tx,
    recorded.map(({ seq, id }) => ({ seq, owners: ownersIn(owner), terms: terms.get(id) ?? '' })),
  );
}

/** The owners under which a memory is indexed. */
export const ownersIn = ({ id, together }: Owner) => (together === null ? [id] : [id, together]);

/** Up to `max` memories that these jobs wrote last, with their indexed columns. */
export function memoriesOfJobs(db: Handle, jobIds: readonly string[], max: number) {
  return db.kysely
    .selectFrom('memories')
    .select(foundBy)
    .where('job_id', 'is not', null)
    .where(isIn(db.dialect, sql.ref('job_id'), listValue(jobIds)))
    .orderBy('owner')
    .limit(max)
    .execute();
}

/** Up to `max` of the agents' own memories that runs for a user wrote, with their indexed columns. */
export function memoriesWrittenFor(
  db: Handle,
  { organizationId, userId }: { organizationId: string; userId: string },
  max: number,
) {
  const owners = db.kysely
    .selectFrom('memory_owners')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('removed', '=', 0);
  return db.kysely
    .selectFrom('memories')
    .select(foundBy)
    .where('written_for', '=', userId)
    .where('owner', 'in', owners)
    .orderBy('owner')
    .limit(max)
    .execute();
}

/** A memory with its indexed columns. */
export type LockedRow = VisibleMemoryRow & Pick<MemoryRow, (typeof foundBy)[number]>;

/** Up to `max` memories of all owners that were recorded after `seq`, in that order. */
export function memoriesAfter(tx: Transaction, seq: number, max: number) {
  return tx.kysely
    .selectFrom('memories')
    .select(foundBy)
    .where('seq', '>', seq)
    .orderBy('seq')
    .limit(max)
    .execute();
}

/** A memory to change or delete, locked against other writers. */
export function lockMemory(tx: Transaction, owners: Seen, id: string, now: number) {
  const query = tx.kysely
    .selectFrom('memories')
    .select([...visibleColumns, ...foundBy])
    .where(ofOwners(owners))
    .where('id', '=', id)
    .where(isCurrent(now));
  return locked(tx.dialect, query).executeTakeFirst();
}

export async function updateMemory(
  tx: Transaction,
  seq: number,
  columns: Partial<MemoryRow>,
): Promise<void> {
  await tx.kysely.updateTable('memories').set(columns).where('seq', '=', seq).execute();
}

export async function deleteMemories(tx: Transaction, memories: readonly Indexed[]): Promise<void> {
  await tx.each(deleteBySeq, memories);
  await unindex(tx, memories);
  await deleteVectors(tx, memories);
}
