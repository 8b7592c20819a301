/** Every query on files. */
import { type Selectable, type SqlBool, sql } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn, idInLocked, isIn, listValue } from '../../adapters/database/ids-in.ts';
import { locked } from '../../adapters/database/locked.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { FilesTable, FileTotalsTable } from '../../adapters/database/tables.ts';

export type FileRow = Selectable<FilesTable>;
export type FileTotals = Pick<Selectable<FileTotalsTable>, 'files' | 'bytes'>;

const ofOrganization = (db: Handle, organizationId: string) =>
  db.kysely.selectFrom('files').where('organization_id', '=', organizationId);

export function findFile(db: Handle, organizationId: string, id: string) {
  return ofOrganization(db, organizationId).selectAll().where('id', '=', id).executeTakeFirst();
}

/** The files of these ids, in no order. */
export function findFiles(db: Handle, organizationId: string, ids: readonly string[]) {
  return ofOrganization(db, organizationId)
    .selectAll()
    .where(idIn(db.dialect, listValue(ids)))
    .execute();
}

/** The oldest file that was fetched from a url for one of the jobs. */
export function findFetchedFile(db: Handle, jobIds: readonly string[], url: string) {
  return (
    db.kysely
      .selectFrom('files')
      .selectAll()
      .where(isIn(db.dialect, sql.ref('job_id'), listValue(jobIds)))
      // So that the query uses the index of files of jobs.
      .where('job_id', 'is not', null)
      .where('source_url', '=', url)
      .orderBy('id')
      .limit(1)
      .executeTakeFirst()
  );
}

/** The file that a run of the same job has made of the same bytes, by the same name. */
export function findSameFile(db: Handle, { job_id, name, sha256 }: FileRow) {
  return db.kysely
    .selectFrom('files')
    .selectAll()
    .where('job_id', '=', job_id)
    .where('sha256', '=', sha256)
    .where('name', '=', name)
    .executeTakeFirst();
}

export interface FileFilters {
  readonly user_id?: string | null;
  readonly job_id?: string;
}

/** A page of files, newest first, and the bytes of all files. The number of all files is that of the totals. */
export async function listFiles(
  db: Handle,
  organizationId: string,
  { user_id, job_id }: FileFilters,
  page: PageAsked,
): Promise<{ data: FileRow[]; total: number; bytes: number }> {
  let query = ofOrganization(db, organizationId);
  if (user_id !== undefined) {
    query = query.where('user_id', user_id === null ? 'is' : '=', user_id);
  }
  if (job_id !== undefined) query = query.where('job_id', '=', job_id);
  const isNarrowed = user_id !== undefined || job_id !== undefined;
  const { files, bytes } = await readTotals(db, organizationId);
  const total = isNarrowed ? await countOf(query) : files;
  const data = await query
    .selectAll()
    .orderBy('id', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return { data, total, bytes: Number(bytes) };
}

export async function insertFile(tx: Transaction, row: FileRow): Promise<void> {
  await tx.insert('files', [row]);
}

const totalsOf = (db: Handle, organizationId: string) =>
  db.kysely
    .selectFrom('file_totals')
    .select(['files', 'bytes'])
    .where('organization_id', '=', organizationId);

export async function readTotals(db: Handle, organizationId: string): Promise<FileTotals> {
  return (await totalsOf(db, organizationId).executeTakeFirst()) ?? { files: 0, bytes: 0 };
}

/** Makes the totals of an organization, and locks them until the transaction ends. */
export async function lockTotals(tx: Transaction, organizationId: string): Promise<FileTotals> {
  await tx.kysely
    .insertInto('file_totals')
    .values({ organization_id: organizationId, files: 0, bytes: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return await locked(tx.dialect, totalsOf(tx, organizationId)).executeTakeFirstOrThrow();
}

export async function addToTotals(
  tx: Transaction,
  organizationId: string,
  { files, bytes }: FileTotals,
): Promise<void> {
  await tx.kysely
    .updateTable('file_totals')
    .set((eb) => ({ files: eb('files', '+', files), bytes: eb('bytes', '+', bytes) }))
    .where('organization_id', '=', organizationId)
    .execute();
}

/** The key of the bytes with a digest; undefined where the organization has none. */
export async function blobKeyOf(
  db: Handle,
  organizationId: string,
  sha256: string,
): Promise<string | undefined> {
  const row = await db.kysely
    .selectFrom('file_blobs')
    .select('blob_key')
    .where('organization_id', '=', organizationId)
    .where('sha256', '=', sha256)
    .executeTakeFirst();
  return row?.blob_key;
}

export async function insertBlob(
  tx: Transaction,
  { organization_id, sha256, blob_key, bytes }: FileRow,
): Promise<void> {
  await tx.insert('file_blobs', [{ organization_id, sha256, blob_key, bytes }]);
}

/** Whether an attempt of a job goes on: locks the job until the transaction ends. */
export async function holdsClaim(tx: Transaction, jobId: string): Promise<boolean> {
  const query = tx.kysely.selectFrom('jobs').select('status').where('id', '=', jobId);
  return (await locked(tx.dialect, query).executeTakeFirst())?.status === 'active';
}

/** Records bytes that may be removed from `dueAt` on. */
export async function insertGarbage(
  tx: Transaction,
  keys: readonly string[],
  dueAt: number,
): Promise<void> {
  await tx.kysely
    .insertInto('file_garbage')
    .values(keys.map((blob_key) => ({ blob_key, due_at: dueAt })))
    .onConflict((conflict) => conflict.column('blob_key').doUpdateSet({ due_at: dueAt }))
    .execute();
}

export async function deleteGarbage(tx: Transaction, keys: readonly string[]): Promise<void> {
  await tx.kysely
    .deleteFrom('file_garbage')
    .where(isIn(tx.dialect, sql.ref('blob_key'), listValue(keys)))
    .execute();
}

/** Removes the record that bytes may be removed; false where that may be before `until`. */
export async function keepBlob(tx: Transaction, key: string, until: number): Promise<boolean> {
  const rows = await tx.kysely
    .deleteFrom('file_garbage')
    .where('blob_key', '=', key)
    .where('due_at', '>', until)
    .returning('blob_key')
    .execute();
  return rows.length > 0;
}

/** The keys of bytes that are garbage until `now`: of all, or of one organization. */
export async function dueGarbage(
  db: Handle,
  now: number,
  limit: number,
  organizationId?: string,
): Promise<string[]> {
  let query = db.kysely.selectFrom('file_garbage').select('blob_key').where('due_at', '<=', now);
  if (organizationId !== undefined) {
    // Keys begin with the id of the organization and a slash, which a 0 follows.
    query = query
      .where('blob_key', '>', `${organizationId}/`)
      .where('blob_key', '<', `${organizationId}0`);
  }
  const rows = await query.orderBy('due_at').limit(limit).execute();
  return rows.map(({ blob_key }) => blob_key);
}

/** Which files to delete: of one organization, or those that have expired. */
export type Deletion =
  | { readonly organizationId: string; readonly id: string }
  | { readonly organizationId: string; readonly userId: string }
  | { readonly organizationId: string; readonly jobIds: readonly string[] }
  | { readonly expiredAt: number };

/** The organizations of the next files to delete, and their ids: at most `limit`. */
export function filesToDelete(db: Handle, which: Deletion, limit: number) {
  const query = db.kysely.selectFrom('files').select(['id', 'organization_id']).limit(limit);
  if ('expiredAt' in which) {
    return query.where('expires_at', '<=', which.expiredAt).orderBy('expires_at').execute();
  }
  const own = query.where('organization_id', '=', which.organizationId);
  if ('id' in which) return own.where('id', '=', which.id).execute();
  if ('userId' in which) return own.where('user_id', '=', which.userId).execute();
  return own
    .where('job_id', 'is not', null)
    .where(isIn(db.dialect, sql.ref('job_id'), listValue(which.jobIds)))
    .execute();
}

/** The next files of jobs that expire before `until`, after the given one. */
export function filesExpiring(
  db: Handle,
  after: Pick<FileRow, 'expires_at' | 'id'>,
  until: number,
  limit: number,
) {
  return db.kysely
    .selectFrom('files')
    .select(['id', 'organization_id', 'expires_at', 'retention_days'])
    .where(sql<SqlBool>`(expires_at, id) > (${after.expires_at}, ${after.id})`)
    .where('expires_at', '<=', until)
    .where('job_id', 'is not', null)
    .orderBy('expires_at')
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Those of the files whose job has not ended, or a job above it, or one that resumes any of these. */
export async function amongInUse(db: Handle, ids: readonly string[]): Promise<Set<string>> {
  // `cross join` keeps SQLite from walking through all jobs.
  const { rows } = await sql<{ id: string }>`
    with recursive users(file_id, id, parent_job_id, due_at) as (
      select files.id, jobs.id, jobs.parent_job_id, jobs.due_at
        from files cross join jobs
        where ${isIn(db.dialect, sql.ref('files.id'), listValue(ids))} and jobs.id = files.job_id
      union
      select users.file_id, next.id, next.parent_job_id, next.due_at
        from users cross join jobs as next
        where next.id = users.parent_job_id
          or (next.retry_of = users.id and next.retry_of is not null and next.resumes is not null)
    )
    select distinct file_id as id from users where due_at is not null`.execute(db.kysely);
  return new Set(rows.map(({ id }) => id));
}

/** Deletes files of an organization whose totals are locked; what they were. */
export function deleteFiles(tx: Transaction, organizationId: string, ids: readonly string[]) {
  return tx.kysely
    .deleteFrom('files')
    .where('organization_id', '=', organizationId)
    .where(idIn(tx.dialect, listValue(ids)))
    .returning(['id', 'bytes', 'blob_key'])
    .execute();
}

/** Deletes, of these bytes of an organization whose totals are locked, those that no file names; their keys. */
export async function deleteUnused(
  tx: Transaction,
  organizationId: string,
  keys: readonly string[],
): Promise<string[]> {
  const isNamed = sql<SqlBool>`exists (select 1 from files where files.blob_key = file_blobs.blob_key)`;
  const rows = await tx.kysely
    .deleteFrom('file_blobs')
    .where('organization_id', '=', organizationId)
    .where(isIn(tx.dialect, sql.ref('blob_key'), listValue(keys)))
    .where((eb) => eb.not(isNamed))
    .returning('blob_key')
    .execute();
  return rows.map(({ blob_key }) => blob_key);
}

/** Has files kept until `expiresAt` at least. */
export async function prolongFiles(
  tx: Transaction,
  organizationId: string,
  ids: readonly string[],
  expiresAt: number,
): Promise<void> {
  await tx.kysely
    .updateTable('files')
    .set({ expires_at: expiresAt })
    .where('organization_id', '=', organizationId)
    .where(idInLocked(tx.dialect, listValue(ids), 'files', sql`expires_at < ${expiresAt}`))
    .execute();
}

export async function setTokens(
  tx: Transaction,
  organizationId: string,
  id: string,
  tokens: number,
): Promise<void> {
  await tx.kysely
    .updateTable('files')
    .set({ tokens })
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .execute();
}

/** Files of a user after `after`, by id. */
export function filesOfUser(
  db: Handle,
  { organizationId, userId }: { readonly organizationId: string; readonly userId: string },
  after: string,
  limit: number,
) {
  return ofOrganization(db, organizationId)
    .selectAll()
    .where('user_id', '=', userId)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
}
