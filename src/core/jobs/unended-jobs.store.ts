/** How many jobs are queued, active and waiting, by the counts that are kept beside them. */
import { type ExpressionBuilder, type SqlBool, sql } from 'kysely';
import type { Handle } from '../../adapters/database/database.ts';
import type { JobStatus, Tables } from '../../adapters/database/tables.ts';

const sumOf = (eb: ExpressionBuilder<Tables, 'job_counts'>) => eb.fn.sum<number>('count').as('n');

/** The counts of these statuses; literals, for their index. */
function unended({ kysely }: Handle) {
  return kysely
    .selectFrom('job_counts')
    .where(sql<SqlBool>`status in ('queued', 'active', 'waiting')`);
}

/** Jobs of all organizations that have not ended, by status and trigger, for the metrics. */
export async function countUnended(db: Handle) {
  const rows = await unended(db)
    .select((eb) => ['trigger_type', 'status', sumOf(eb)])
    .groupBy(['trigger_type', 'status'])
    .execute();
  return rows.map((row) => ({ ...row, n: Number(row.n) }));
}

/** How many jobs of an organization are queued, active and waiting. */
export async function countUnendedOf(db: Handle, organizationId: string) {
  const rows = await unended(db)
    .select((eb) => ['status', sumOf(eb)])
    .where('organization_id', '=', organizationId)
    .groupBy('status')
    .execute();
  const of = (status: JobStatus) => Number(rows.find((row) => row.status === status)?.n ?? 0);
  return { queued: of('queued'), active: of('active'), waiting: of('waiting') };
}
