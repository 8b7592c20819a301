/** The queries of the retention of events. */
import { type SqlBool, sql } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { idIn } from '../database/ids-in.ts';
import { allRows, statement } from '../database/statement.ts';

const eventPage = allRows<{ after: string; limit: number }>()((db, p) =>
  db
    .selectFrom('received_events')
    .select(['id', 'organization_id', 'job_id', 'created_at'])
    .select(({ selectFrom }) =>
      selectFrom('jobs')
        .select('jobs.due_at')
        .whereRef('jobs.id', '=', 'received_events.job_id')
        .as('due_at'),
    )
    .where('id', '>', p('after'))
    .orderBy('id')
    .limit(p('limit')),
);

/** Events after one, in the order of their ids; `due_at` is null where the only job that may take one has ended. */
export function pageOfEvents(db: Handle, after: string, limit: number) {
  return eventPage(db, { after, limit });
}

/** The statuses as literals, for the index of unended jobs. */
const oldestUnended = allRows<Record<never, never>>()((db) =>
  db
    .selectFrom('jobs')
    .select(({ fn }) => ['organization_id', fn.min('id').as('id')])
    .where(sql<SqlBool>`status in ('queued', 'active', 'waiting')`)
    .where('due_at', 'is not', null)
    .groupBy('organization_id'),
);

/** The oldest job of each organization that has not ended. */
export async function oldestUnendedJobs(db: Handle): Promise<ReadonlyMap<string, string>> {
  const rows = await oldestUnended(db, {});
  return new Map(rows.map(({ organization_id, id }) => [organization_id, id]));
}

const removeEvents = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db.deleteFrom('received_events').where(idIn(dialect, p.list('ids'))),
);

export async function deleteEvents(tx: Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await tx.each(removeEvents, [{ ids }]);
}

const positions = allRows<{ after: string; limit: number }>()((db, p) =>
  db
    .selectFrom('event_positions')
    .select('job_id')
    .select(({ selectFrom }) =>
      selectFrom('jobs')
        .select('jobs.due_at')
        .whereRef('jobs.id', '=', 'event_positions.job_id')
        .as('due_at'),
    )
    .where('job_id', '>', p('after'))
    .groupBy('job_id')
    .orderBy('job_id')
    .limit(p('limit')),
);

/** Jobs that were given events, in the order of their ids; `due_at` is null for those that have ended. */
export function pageOfGivenJobs(db: Handle, after: string, limit: number) {
  return positions(db, { after, limit });
}
