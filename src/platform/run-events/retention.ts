/**
 * Retention of events: deletes the waits, positions and events of jobs that have ended, and expired Idempotency-Keys,
 * in batches.
 */
import type { Database } from '../../adapters/database/database.ts';
import { deleteAll } from '../../adapters/database/in-batches.ts';
import { idempotencyMs } from '../../core/jobs/idempotency.ts';
import type { Clock } from '../../kernel/clock.ts';
import { deleteOldEventKeys } from './idempotency.store.ts';
import { forgetJobs, pagesOfJobs } from './waits.store.ts';

/** Rows that one transaction reads or deletes. */
const rowsMax = 1_000;

export async function deleteOldEvents(database: Database, clock: Clock): Promise<void> {
  const before = clock.now() - idempotencyMs;
  await deleteAll(database, rowsMax, (tx) => deleteOldEventKeys(tx, before, rowsMax));
  for (const pageOfJobs of pagesOfJobs) {
    let page = await pageOfJobs(database.read, { after: '', limit: rowsMax });
    for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
      const ended = page.filter(({ due_at }) => due_at === null).map(({ job_id }) => job_id);
      if (ended.length > 0) await database.write((tx) => forgetJobs(tx, ended));
      page = await pageOfJobs(database.read, { after: last.job_id, limit: rowsMax });
    }
  }
}
