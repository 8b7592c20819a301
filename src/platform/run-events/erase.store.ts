/** The queries on the received events of jobs that are erased. */
import { sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';
import { isIn, listValue } from '../../adapters/database/ids-in.ts';

/** The ids of the events that the jobs have taken, and of those that only they could take. */
export async function listEventsOfJobs(
  tx: Transaction,
  jobIds: readonly string[],
): Promise<string[]> {
  const id =
    tx.dialect === 'sqlite'
      ? sql<string | null>`json_extract(result, '$.value.id')`
      : sql<string | null>`result::json -> 'value' ->> 'id'`;
  const taken = await tx.kysely
    .selectFrom('job_steps')
    .select(id.as('event_id'))
    .where(isIn(tx.dialect, sql.ref('job_id'), listValue(jobIds)))
    .where('kind', '=', 'event')
    .where('result', 'is not', null)
    .execute();
  const sent = await tx.kysely
    .selectFrom('received_events')
    .select('id as event_id')
    .where('job_id', 'is not', null)
    .where(isIn(tx.dialect, sql.ref('job_id'), listValue(jobIds)))
    .execute();
  return [...new Set([...taken, ...sent].flatMap(({ event_id }) => event_id ?? []))];
}

/** Deletes the Idempotency-Keys of events. */
export async function deleteEventKeys(tx: Transaction, eventIds: readonly string[]): Promise<void> {
  await tx.kysely
    .deleteFrom('event_idempotency_keys')
    .where(isIn(tx.dialect, sql.ref('event_id'), listValue(eventIds)))
    .execute();
}
