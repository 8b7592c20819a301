/** The queries on vectors of memories: missing ones, recorded ones and the nearest ones. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Dialect, Handle, Transaction } from '../../adapters/database/database.ts';
import { locked } from '../../adapters/database/locked.ts';
import { allRows, firstRow, statement } from '../../adapters/database/statement.ts';
import { type OwnerRow, ownerKinds } from './owners.store.ts';

/** Whether another organization has vectors of the model. */
export async function hasVectorsElsewhere(
  tx: Transaction,
  model: number,
  { organizationId }: { organizationId: string },
): Promise<boolean> {
  const { rows } = await sql<{ id: number }>`select o.id from memory_owners o
    where o.organization_id <> ${organizationId}
      and exists (select 1 from memory_codes c where c.owner = o.id and c.model = ${model})
    limit 1`.execute(tx.kysely);
  return rows.length > 0;
}

/** The next owner after `after` with a memory of this model. */
export const findOwnerWith = firstRow<{ embedding: number; after: number }>()((db, p) =>
  db
    .selectFrom('memories')
    .select('owner')
    .where('embedding', '=', p('embedding'))
    .where('owner', '>', p('after'))
    .orderBy('owner')
    .limit(sql.lit(1)),
);

export const findOwnerName = firstRow<{ id: number }>()((db, p) =>
  db
    .selectFrom('memory_owners')
    .select(['organization_id', 'agent_id', 'removed'])
    .where('id', '=', p('id')),
);

/** Memories of an agent and its users that have this model, newest first. */
export const listWith = allRows<{
  embedding: number;
  organization_id: string;
  agent_id: string;
  users_agent_id: string;
  limit: number;
}>()((db, p) =>
  db
    .selectFrom('memories')
    .select(['seq', 'updated_at', 'content'])
    .where('embedding', '=', p('embedding'))
    .where(({ eb, or, selectFrom }) =>
      eb(
        'owner',
        'in',
        selectFrom('memory_owners')
          .select(sql<number>`id`.as('id'))
          .where('organization_id', '=', p('organization_id'))
          .where('removed', '=', sql.lit(0))
          .where(({ eb: own }) =>
            or([own('agent_id', '=', p('agent_id')), own('agent_id', '=', p('users_agent_id'))]),
          ),
      ),
    )
    .orderBy('seq', 'desc')
    .limit(p('limit')),
);

/** How many memories have no vector of the model, counted up to `most`. */
export const countWithout = firstRow<{ model: number; most: number }>()((db, p) =>
  db
    .selectFrom(
      db
        .selectFrom('memories')
        .select('seq')
        .where(({ eb, or }) =>
          or([eb('embedding', '<', p('model')), eb('embedding', '>', p('model'))]),
        )
        .limit(p('most'))
        .as('found'),
    )
    .select((eb) => eb.fn.countAll<number>().as('count')),
);

/** Locks memories by `seq` and returns those that still exist. */
export async function lockBySeq(tx: Transaction, seqs: readonly number[]) {
  const query = tx.kysely
    .selectFrom('memories')
    .select(['seq', 'owner', 'together', 'updated_at'])
    .where('seq', 'in', seqs)
    .orderBy('seq');
  return await locked(tx.dialect, query).execute();
}

const deleteCode = statement<{ seq: number }>()((db, p) =>
  db.deleteFrom('memory_codes').where('seq', '=', p('seq')),
);
const deleteVector = statement<{ seq: number }>()((db, p) =>
  db.deleteFrom('memory_vectors').where('seq', '=', p('seq')),
);

/** Deletes the vectors of memories, which are locked or deleted. */
export async function deleteVectors(
  tx: Transaction,
  memories: readonly { readonly seq: number }[],
): Promise<void> {
  const seqs = memories.map(({ seq }) => ({ seq }));
  await tx.each(deleteCode, seqs);
  await tx.each(deleteVector, seqs);
}

export interface VectorRow {
  readonly seq: number;
  readonly owner: number;
  readonly together: number | null;
  readonly vector: Uint8Array;
  readonly code: Uint8Array;
}

/** Records vectors of locked memories without vectors. */
export async function insertVectors(
  tx: Transaction,
  model: number,
  rows: readonly VectorRow[],
): Promise<void> {
  if (rows.length === 0) return;
  await tx.kysely
    .insertInto('memory_vectors')
    .values(rows.map(({ seq, vector }) => ({ seq, model, vector })))
    .execute();
  await tx.kysely
    .insertInto('memory_codes')
    .values(
      rows.map(({ seq, owner, together, code }) => ({
        ...{ seq, owner, together, model },
        code: codeValue(tx.dialect, code),
      })),
    )
    .execute();
}

/** A code as a column value: PostgreSQL takes bits as `x` and hexadecimal digits. */
function codeValue(dialect: Dialect, code: Uint8Array): RawBuilder<Uint8Array> {
  return dialect === 'sqlite'
    ? sql<Uint8Array>`${code}`
    : sql<Uint8Array>`${`x${Buffer.from(code).toString('hex')}`}::bit varying`;
}

/** Sets the model of memories. */
export async function setModel(tx: Transaction, model: number, seqs: readonly number[]) {
  if (seqs.length === 0) return;
  await tx.kysely
    .updateTable('memories')
    .set({ embedding: model })
    .where('seq', 'in', seqs)
    .execute();
}

/** SQLite: up to `max` codes of an owner after the number `n`, in order. */
export function listCodes(
  db: Handle,
  { id: owner, kind }: OwnerRow,
  page: { readonly model: number; readonly n: number; readonly max: number },
) {
  return (kind === ownerKinds.together ? listCodesTogether : listOwnCodes)(db, { owner, ...page });
}

const listOwnCodes = allRows<{ owner: number; model: number; n: number; max: number }>()((db, p) =>
  db
    .selectFrom('memory_codes')
    .select(['n', 'seq', 'code'])
    .where('owner', '=', p('owner'))
    .where('model', '=', p('model'))
    .where('n', '>', p('n'))
    .orderBy('n')
    .limit(p('max')),
);
const listCodesTogether = allRows<{
  owner: number;
  model: number;
  n: number;
  max: number;
}>()((db, p) =>
  db
    .selectFrom('memory_codes')
    .select(['n', 'seq', 'code'])
    .where('together', '=', p('owner'))
    .where('model', '=', p('model'))
    .where('n', '>', p('n'))
    .orderBy('n')
    .limit(p('max')),
);

/** The owners of a search: `own` are agents and single users, `together` are all users of an agent. */
export interface SeenOwners {
  readonly own: readonly number[];
  readonly together: readonly number[];
}

/** A unary plus keeps SQLite's planner from scanning all rows of the owners when rows are selected by number. */
function isSeen({ own, together }: SeenOwners, plus: '' | '+' = ''): RawBuilder<SqlBool> {
  const isOneOf = (column: string, ids: readonly number[]) =>
    sql`${sql.raw(`${plus}${column}`)} in (${sql.join(ids)})`;
  const conditions = [
    ...(own.length > 0 ? [isOneOf('owner', own)] : []),
    ...(together.length > 0 ? [isOneOf('together', together)] : []),
  ];
  return sql<SqlBool>`(${sql.join(conditions, sql` or `)})`;
}

/** The codes of owners, as a union: with both conditions in one, a planner may read the codes of all owners. */
function codesOf(db: Handle, { own, together }: SeenOwners, model: number) {
  const having = (column: 'owner' | 'together', ids: readonly number[]) =>
    db.kysely
      .selectFrom('memory_codes')
      .select(['seq', 'code'])
      .where(column, 'in', ids)
      .where('model', '=', model);
  return [
    ...(own.length > 0 ? [having('owner', own)] : []),
    ...(together.length > 0 ? [having('together', together)] : []),
  ];
}

/** Whether the owners have any vector of a model. */
export async function hasVectors(db: Handle, seen: SeenOwners, model: number): Promise<boolean> {
  for (const codes of codesOf(db, seen, model)) {
    if ((await codes.limit(1).executeTakeFirst()) !== undefined) return true;
  }
  return false;
}

/** The number of the code before the newest `last` codes of an owner; 0 if there is none. */
export async function codeBefore(
  db: Handle,
  { id, kind }: OwnerRow,
  model: number,
  last: number,
): Promise<number> {
  const row = await db.kysely
    .selectFrom('memory_codes')
    .select('n')
    .where(kind === ownerKinds.together ? 'together' : 'owner', '=', id)
    .where('model', '=', model)
    .orderBy('n', 'desc')
    .limit(1)
    .offset(last)
    .executeTakeFirst();
  return Number(row?.n ?? 0);
}

/** PostgreSQL: the memories whose codes differ least from the given one; of equals the newest first. */
export async function nearestCodes(
  db: Handle,
  seen: SeenOwners,
  asked: { model: number; code: Uint8Array; tag?: string | undefined; most: number },
): Promise<number[]> {
  const { model, code, tag, most } = asked;
  const [first, ...others] = codesOf(db, seen, model);
  if (first === undefined) return [];
  const all = others.reduce((union, one) => union.unionAll(one), first);
  let query = db.kysely
    .selectFrom(all.as('codes'))
    .select('seq')
    .orderBy(sql`memory_distance(code, ${codeValue(db.dialect, code)})`)
    .orderBy('seq', 'desc')
    .limit(most);
  if (tag !== undefined) {
    query = query.where('seq', 'in', (eb) =>
      eb.selectFrom('memories').select('memories.seq').where(isSeen(seen)).where('tag', '=', tag),
    );
  }
  return (await query.execute()).map(({ seq }) => Number(seq));
}

/** The `seq` of the owners' memories with a tag. */
export async function listTagged(db: Handle, seen: SeenOwners, tag: string): Promise<number[]> {
  const { rows } = await sql<{ seqs: string }>`
    select json_group_array(seq) as seqs from memories where ${isSeen(seen)} and tag = ${tag}`.execute(
    db.kysely,
  );
  return JSON.parse(rows[0]?.seqs ?? '[]') as number[];
}

/** The vectors of memories that have not expired. */
export function vectorsOf(
  db: Handle,
  seen: SeenOwners,
  {
    seqs,
    model,
    now,
    tag,
  }: { seqs: readonly number[]; model: number; now: number; tag?: string | undefined },
) {
  let query = db.kysely
    .selectFrom('memory_vectors as v')
    .innerJoin('memories', 'memories.seq', 'v.seq')
    .select(['memories.seq', 'memories.id', 'v.vector'])
    .where('v.seq', 'in', seqs)
    .where('v.model', '=', model)
    .where(isSeen(seen, '+'))
    .where(({ eb, or }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]));
  if (tag !== undefined) query = query.where('tag', '=', tag);
  return query.execute();
}
