/** The rows of batches. */
import { type Insertable, type Selectable, sql } from 'kysely';
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import { isIn, listValue } from '../../../adapters/database/ids-in.ts';
import type { PageAsked } from '../../../adapters/database/page-bytes.ts';
import type { BatchesTable, JobStatus } from '../../../adapters/database/tables.ts';

export type BatchRow = Selectable<BatchesTable>;

/** Records a batch; false where an earlier one of the same key has its Idempotency-Key. */
export async function insertBatch(
  tx: Transaction,
  row: Insertable<BatchesTable>,
): Promise<boolean> {
  const inserted = await tx.kysely
    .insertInto('batches')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .execute();
  return inserted.length > 0;
}

/** Forgets a key that is older than `before`. */
export async function forgetKey(
  tx: Transaction,
  { api_key_id, idempotency_key }: { api_key_id: string; idempotency_key: string },
  before: number,
): Promise<void> {
  await tx.kysely
    .updateTable('batches')
    .set({ idempotency_key: null, fingerprint: null })
    .where('api_key_id', '=', api_key_id)
    .where('idempotency_key', '=', idempotency_key)
    .where('created_at', '<', before)
    .execute();
}

export function findBatchOfKey(
  db: Handle,
  { api_key_id, idempotency_key }: { api_key_id: string; idempotency_key: string },
): Promise<BatchRow | undefined> {
  return db.kysely
    .selectFrom('batches')
    .selectAll()
    .where('api_key_id', '=', api_key_id)
    .where('idempotency_key', '=', idempotency_key)
    .executeTakeFirst();
}

/** Records how the items of a batch were answered. */
export async function setResults(
  tx: Transaction,
  { id, ...set }: Partial<BatchRow> & { readonly id: string },
): Promise<void> {
  await tx.kysely.updateTable('batches').set(set).where('id', '=', id).execute();
}

export function findBatch(
  db: Handle,
  organizationId: string,
  id: string,
): Promise<BatchRow | undefined> {
  return db.kysely
    .selectFrom('batches')
    .selectAll()
    .where('id', '=', id)
    .where('organization_id', '=', organizationId)
    .executeTakeFirst();
}

/** A page of batches, newest first, and how many there are in all. */
export async function listBatches(db: Handle, organizationId: string, page: PageAsked) {
  const all = db.kysely.selectFrom('batches').where('organization_id', '=', organizationId);
  const counted = await all.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
  const rows = await all
    .select(['id', 'accepted', 'refused', 'created_at', 'completed_at'])
    .orderBy('id', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return { rows, total: Number(counted?.n ?? 0) };
}

/** How jobs of a batch have ended, of those that it counts itself. */
interface EndedJobs {
  readonly id: string;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
}

/** How many jobs of a batch have each status: those that there are, and those that retention has deleted. */
export async function countsOfBatch(
  db: Handle,
  { id, completed, failed, cancelled }: EndedJobs,
): Promise<Readonly<Record<JobStatus, number>>> {
  const rows = await db.kysely
    .selectFrom('jobs')
    .select((eb) => ['status', eb.fn.countAll<number>().as('n')])
    .where('batch_id', '=', id)
    .groupBy('status')
    .execute();
  const counts = { queued: 0, active: 0, waiting: 0, completed, failed, cancelled };
  for (const { status, n } of rows) counts[status] += Number(n);
  return counts;
}

/** Locks a batch that is not completed, with its counts. */
export function lockOpenBatch(tx: Transaction, id: string) {
  const open = tx.kysely
    .selectFrom('batches')
    .select(['id', 'completed', 'failed', 'cancelled'])
    .where('id', '=', id)
    .where('completed_at', 'is', null);
  return (tx.dialect === 'postgres' ? open.forUpdate() : open).executeTakeFirst();
}

/** Batches after one by id that are not completed and of which no job is left to end; and the last that was read. */
export async function findEndedBatches(db: Handle, after: string, limit: number) {
  const rows = await db.kysely
    .selectFrom('batches')
    .select((eb) => [
      'id',
      eb
        .exists(
          eb
            .selectFrom('jobs')
            .select('jobs.id')
            .whereRef('jobs.batch_id', '=', 'batches.id')
            .where('jobs.batch_id', 'is not', null)
            .where('jobs.due_at', 'is not', null),
        )
        .as('is_open'),
    ])
    .where('completed_at', 'is', null)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
  const ended = rows.filter(({ is_open }) => !is_open).map(({ id }) => id);
  return { ended, last: rows.length < limit ? undefined : rows.at(-1)?.id };
}

/** Records that a batch is completed; undefined where it was already. */
export function completeBatch(
  tx: Transaction,
  { id, ...set }: Partial<BatchRow> & { readonly id: string },
) {
  return tx.kysely
    .updateTable('batches')
    .set(set)
    .where('id', '=', id)
    .where('completed_at', 'is', null)
    .returning(['id', 'organization_id', 'accepted', 'created_at'])
    .executeTakeFirst();
}

/** Deletes batches that were completed before a moment and whose jobs are gone; how many. */
export async function deleteBatchesBefore(tx: Transaction, before: number, limit: number) {
  const found = await tx.kysely
    .selectFrom('batches')
    .select('id')
    .where('completed_at', 'is not', null)
    .where('completed_at', '<', before)
    .where(
      sql<boolean>`not exists (select 1 from jobs
        where jobs.batch_id = batches.id and jobs.batch_id is not null)`,
    )
    .limit(limit)
    .execute();
  if (found.length === 0) return 0;
  const ids = listValue(found.map(({ id }) => id));
  await tx.kysely
    .deleteFrom('batches')
    .where(isIn(tx.dialect, sql.ref('id'), ids))
    .execute();
  return found.length;
}
