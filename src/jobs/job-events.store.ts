/** The event streams of jobs: what runs have said. */
import type { Handle, Transaction } from '../database/database.ts';
import type { JobEventsTable } from '../database/tables.ts';

/** Adds to the event stream of jobs. */
export async function insertJobEvents(
  tx: Transaction,
  events: readonly JobEventsTable[],
): Promise<void> {
  await tx.insert('job_events', events);
}

/** What was said after (`epoch`, `n`), in order. */
export function listJobEvents(
  db: Handle,
  jobId: string,
  after: { epoch: number; n: number },
  limit: number,
): Promise<JobEventsTable[]> {
  return db.kysely
    .selectFrom('job_events')
    .selectAll()
    .where('job_id', '=', jobId)
    .where((eb) =>
      eb.or([
        eb('epoch', '>', after.epoch),
        eb.and([eb('epoch', '=', after.epoch), eb('n', '>', after.n)]),
      ]),
    )
    .orderBy('epoch')
    .orderBy('n')
    .limit(limit)
    .execute();
}
