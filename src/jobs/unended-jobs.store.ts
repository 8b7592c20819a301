/** How many jobs wait and run, by the counts that are kept beside them. */
import { type SqlBool, sql } from 'kysely';
import type { Handle } from '../database/database.ts';
import type { JobStatus, TriggerType } from '../database/tables.ts';

/** Jobs of all organizations that have not ended, by status and trigger, for the metrics. */
export async function countUnended(
  db: Handle,
): Promise<{ trigger_type: TriggerType; status: JobStatus; n: number }[]> {
  const rows = await db.kysely
    .selectFrom('job_counts')
    .select((eb) => ['trigger_type', 'status', eb.fn.sum<number>('count').as('n')])
    // Literals, for the index of these two.
    .where(sql<SqlBool>`status in ('queued', 'active')`)
    .groupBy(['trigger_type', 'status'])
    .execute();
  return rows.map((row) => ({ ...row, n: Number(row.n) }));
}

/** How many jobs of an organization wait and run. */
export async function countUnendedOf(
  db: Handle,
  organizationId: string,
): Promise<{ queued: number; active: number }> {
  const rows = await db.kysely
    .selectFrom('job_counts')
    .select((eb) => ['status', eb.fn.sum<number>('count').as('n')])
    .where('organization_id', '=', organizationId)
    // Literals, for the index of these two.
    .where(sql<SqlBool>`status in ('queued', 'active')`)
    .groupBy('status')
    .execute();
  const of = (status: JobStatus) => Number(rows.find((row) => row.status === status)?.n ?? 0);
  return { queued: of('queued'), active: of('active') };
}
