/** Erasure of what jobs that have ended were sent: received events, their Idempotency-Keys, and the jobs' places in them. */
import { sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { isIn, listValue } from '../database/ids-in.ts';
import { removeEventsTaken } from './untakeable.store.ts';
import { forgetJobs } from './waits.store.ts';

/**
 * Erases the events that the jobs have taken, and those that only they could take. Its caller removes their steps
 * afterwards: they name the events that were taken, which may be deleted already while their keys are not.
 */
export async function eraseEventsOfJobs(tx: Transaction, ids: readonly string[]): Promise<void> {
  const id =
    tx.dialect === 'sqlite'
      ? sql<string | null>`json_extract(result, '$.value.id')`
      : sql<string | null>`result::json -> 'value' ->> 'id'`;
  const taken = await tx.kysely
    .selectFrom('job_steps')
    .select(id.as('event_id'))
    .where(isIn(tx.dialect, sql.ref('job_id'), listValue(ids)))
    .where('kind', '=', 'event')
    .where('result', 'is not', null)
    .execute();
  const sent = await tx.kysely
    .selectFrom('received_events')
    .select('id as event_id')
    .where('job_id', 'is not', null)
    .where(isIn(tx.dialect, sql.ref('job_id'), listValue(ids)))
    .execute();
  const events = [...new Set([...taken, ...sent].flatMap(({ event_id }) => event_id ?? []))];
  if (events.length > 0) {
    await tx.kysely
      .deleteFrom('event_idempotency_keys')
      .where(isIn(tx.dialect, sql.ref('event_id'), listValue(events)))
      .execute();
    await removeEventsTaken(tx, events);
  }
  await forgetJobs(tx, ids);
}
