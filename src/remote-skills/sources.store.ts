/** Every query on remote sources. */
import type { Selectable, Updateable } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import type { PageAsked } from '../database/page-bytes.ts';
import type { RemoteSourcesTable } from '../database/tables.ts';

export type SourceRow = Selectable<RemoteSourcesTable>;

export function findSource(db: Handle, id: string): Promise<SourceRow | undefined> {
  return db.kysely.selectFrom('remote_sources').selectAll().where('id', '=', id).executeTakeFirst();
}

export function findSourceNamed(
  db: Handle,
  kind: string,
  name: string,
): Promise<SourceRow | undefined> {
  return db.kysely
    .selectFrom('remote_sources')
    .selectAll()
    .where('kind', '=', kind)
    .where('name', '=', name)
    .executeTakeFirst();
}

/** A page of the sources of a kind by name, and the total. */
export async function listSources(
  db: Handle,
  kind: string,
  page: PageAsked,
): Promise<{ sources: SourceRow[]; total: number }> {
  const query = db.kysely.selectFrom('remote_sources').where('kind', '=', kind);
  const sources = await query
    .selectAll()
    .orderBy('name')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return { sources, total: await countSources(db, kind) };
}

export async function countSources(db: Handle, kind: string): Promise<number> {
  const row = await db.kysely
    .selectFrom('remote_sources')
    .where('kind', '=', kind)
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirst();
  return Number(row?.n ?? 0);
}

/** Inserts a source; false when there is one of its name. */
export async function insertSource(tx: Transaction, row: SourceRow): Promise<boolean> {
  const inserted = await tx.kysely
    .insertInto('remote_sources')
    .values(row)
    .onConflict((conflict) => conflict.columns(['kind', 'name']).doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted !== undefined;
}

/** Changes a source and returns it, locked until the transaction ends; undefined when it is gone. */
export function updateSource(
  tx: Transaction,
  id: string,
  changes: Updateable<RemoteSourcesTable>,
): Promise<SourceRow | undefined> {
  return tx.kysely
    .updateTable('remote_sources')
    .set(changes)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
}

export async function deleteSource(tx: Transaction, id: string): Promise<void> {
  await tx.kysely.deleteFrom('remote_sources').where('id', '=', id).execute();
}
