/** Every query on remote sources. */

import type { Selectable, Updateable } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { RemoteSourcesTable } from '../../adapters/database/tables.ts';

/** Without its document, which may have megabytes and is needed only for a refresh. */
export type SourceRow = Omit<Selectable<RemoteSourcesTable>, 'document'>;

const columns = [
  ...(['id', 'kind', 'name', 'settings', 'secrets', 'about', 'status'] as const),
  ...(['organizations'] as const),
  ...(['fault', 'fault_at', 'refreshed_at', 'created_at', 'updated_at'] as const),
] as const;

export function findSource(db: Handle, id: string): Promise<SourceRow | undefined> {
  return db.kysely
    .selectFrom('remote_sources')
    .select(columns)
    .where('id', '=', id)
    .executeTakeFirst();
}

export async function findDocument(db: Handle, id: string): Promise<string | null> {
  const row = await db.kysely
    .selectFrom('remote_sources')
    .select('document')
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.document ?? null;
}

export function findSourceNamed(
  db: Handle,
  kind: string,
  name: string,
): Promise<SourceRow | undefined> {
  return db.kysely
    .selectFrom('remote_sources')
    .select(columns)
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
    .select(columns)
    .orderBy('name')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return { sources, total: await countSources(db, kind) };
}

export function countSources(db: Handle, kind: string): Promise<number> {
  return countOf(db.kysely.selectFrom('remote_sources').where('kind', '=', kind));
}

/** The first sources for which no organizations were ever named, by kind and name. */
export function listUnnamed(
  db: Handle,
  limit: number,
): Promise<Pick<SourceRow, 'kind' | 'name'>[]> {
  return db.kysely
    .selectFrom('remote_sources')
    .select(['kind', 'name'])
    .where('organizations', 'is', null)
    .orderBy('kind')
    .orderBy('name')
    .limit(limit)
    .execute();
}

/** Inserts a source; false when there is one of its name. */
export async function insertSource(
  tx: Transaction,
  row: Selectable<RemoteSourcesTable>,
): Promise<boolean> {
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
    .returning(columns)
    .executeTakeFirst();
}

export async function deleteSource(tx: Transaction, id: string): Promise<void> {
  await tx.kysely.deleteFrom('remote_sources').where('id', '=', id).execute();
}
