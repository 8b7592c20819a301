/** The moment since which the oldest due job has been due: how far the workers are behind. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Handle } from '../../../adapters/database/database.ts';
import { statement } from '../../../adapters/database/statement.ts';
import type { JobStatus } from '../../../adapters/database/tables.ts';
import { dueSince, wokenAt } from './waiting.store.ts';

/** Each is one search in an index: due times of jobs that were woken are negative. */
type Oldest = Readonly<Record<'queued' | 'woken' | 'waited', number | null>>;

const first = (status: JobStatus, among: RawBuilder<SqlBool>, range: RawBuilder<SqlBool>) => sql<
  number | null
>`(select due_at from jobs
    where status = ${sql.lit(status)} and ${among} and ${range} order by due_at limit 1)`;

const oldestIn = (isScheduled: '=' | '<>') =>
  statement<{ now: number; woken_by: number }>()((db, p) => {
    const among = sql<SqlBool>`trigger_type ${sql.raw(isScheduled)} 'scheduled'`;
    const due = sql<SqlBool>`due_at <= ${p('now')}`;
    return db.selectNoFrom([
      first('queued', among, due).as('queued'),
      first('waiting', among, sql`due_at <= ${p('woken_by')}`).as('woken'),
      first('waiting', among, sql`due_at >= 0 and ${due}`).as('waited'),
    ]);
  });

const oldestInQueue = { 'scheduled-jobs': oldestIn('='), 'skill-execution': oldestIn('<>') };

/** Since when the oldest due job of a queue has been due, undefined when none is. */
export async function findOldestDue(
  db: Handle,
  queue: keyof typeof oldestInQueue,
  now: number,
): Promise<number | undefined> {
  return oldest(await db.first(oldestInQueue[queue], { now, woken_by: wokenAt(now) }));
}

const oldestOf = statement<{ organization_id: string; now: number; woken_by: number }>()(
  (db, p) => {
    // No index has this expression, so the few jobs that are due are searched, and not all that wait.
    const among = sql<SqlBool>`organization_id || '' = ${p('organization_id')}`;
    return db.selectNoFrom([
      // The exact expression of the index that serves this query alone.
      sql<number | null>`(select run_at from jobs where organization_id = ${p('organization_id')}
        and status || '' = 'queued' and run_at <= ${p('now')} order by run_at limit 1)`.as(
        'queued',
      ),
      first('waiting', among, sql`due_at <= ${p('woken_by')}`).as('woken'),
      first('waiting', among, sql`due_at >= 0 and due_at <= ${p('now')}`).as('waited'),
    ]);
  },
);

/** Since when the oldest due job of an organization has been due, undefined when none is. */
export async function findOldestDueOf(
  db: Handle,
  organizationId: string,
  now: number,
): Promise<number | undefined> {
  const params = { organization_id: organizationId, now, woken_by: wokenAt(now) };
  return oldest(await db.first(oldestOf, params));
}

function oldest(found: Oldest | undefined): number | undefined {
  const moments = Object.values(found ?? {})
    .filter((dueAt) => dueAt !== null)
    .map(dueSince);
  return moments.length === 0 ? undefined : Math.min(...moments);
}
