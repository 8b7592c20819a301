/**
 * Retention of events: deletes those that no unended job is old enough to take, those for one job that
 * has ended, what jobs that have ended were given, and Idempotency-Keys that are no longer remembered. In
 * batches.
 */
import type { Database } from '../database/database.ts';
import { deleteInBatches, foundAndDeleted } from '../database/in-batches.ts';
import { idempotencyMs } from '../jobs/idempotency.ts';
import type { Clock } from '../kernel/clock.ts';
import { deleteOldEventKeys } from './idempotency.store.ts';
import {
  deleteEvents,
  oldestUnendedJobs,
  pageOfEvents,
  pageOfGivenJobs,
} from './retention.store.ts';
import { forgetJobs } from './waits.store.ts';

/** Rows that one transaction reads or deletes. */
const rowsMax = 1_000;
/** Longer than a transaction under way takes, and than the clocks of processes differ. */
const settledMs = 60_000;

export async function deleteOldEvents(deps: {
  readonly database: Database;
  readonly clock: Clock;
}): Promise<void> {
  const { database, clock } = deps;
  const before = clock.now() - idempotencyMs;
  await deleteInBatches(database, rowsMax, async (tx) =>
    foundAndDeleted(await deleteOldEventKeys(tx, before, rowsMax)),
  );
  await deleteUntakeable(database, clock.now());
  await forgetEndedJobs(database);
}

/**
 * Every job that could take an event of before `settledMs` is recorded by now, so an event that none can
 * take stays so.
 */
async function deleteUntakeable(database: Database, now: number): Promise<void> {
  const before = now - settledMs;
  let page = await pageOfEvents(database.read, '', rowsMax);
  // Without events, the jobs need not be read.
  if (page.length === 0) return;
  const oldest = await oldestUnendedJobs(database.read);
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    const ids = page
      .filter(({ id, organization_id, created_at, job_id, due_at }) => {
        if (created_at >= before) return false;
        const first = oldest.get(organization_id);
        return first === undefined || id < first || (job_id !== null && due_at === null);
      })
      .map(({ id }) => id);
    if (ids.length > 0) await database.write((tx) => deleteEvents(tx, ids));
    page = await pageOfEvents(database.read, last.id, rowsMax);
  }
}

async function forgetEndedJobs(database: Database): Promise<void> {
  let page = await pageOfGivenJobs(database.read, '', rowsMax);
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    const ended = page.filter(({ due_at }) => due_at === null).map(({ job_id }) => job_id);
    if (ended.length > 0) await database.write((tx) => forgetJobs(tx, ended));
    page = await pageOfGivenJobs(database.read, last.job_id, rowsMax);
  }
}
