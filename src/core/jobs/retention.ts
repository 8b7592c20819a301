/**
 * Retention: deletes ended jobs, their conversations and other old rows in batches, so that the size
 * of the database follows the configured number of days. Never touches a job that has not ended.
 */

import type { Writer } from '../../adapters/database/counts.ts';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import {
  type DeletedBatch,
  deleteAll,
  deleteInBatches,
} from '../../adapters/database/in-batches.ts';
import { type Clock, dayMs } from '../../kernel/clock.ts';
import { idFloor } from '../../kernel/ids.ts';
import { foldConversationCounts, forgetJobs } from '../conversations/record.ts';
import type { ReaderCursor } from '../events/reader-queries.ts';
import { removeSteps } from '../journal/steps.ts';
import { deleteOldKeys } from './idempotency.store.ts';
import { idempotencyMs } from './idempotency.ts';
import { deleteOldJobKeys } from './job-keys/job-keys.store.ts';
import { jobCounts } from './jobs.store.ts';
import {
  deleteJobs,
  deleteOldEvents,
  findEndedJobs,
  keepCountsOfBatches,
} from './retention.store.ts';

/** Jobs deleted in one transaction, each with its messages. */
const jobsMax = 100;
/** Rows of other kinds deleted in one transaction. */
const rowsMax = 1_000;

/** Deletes the jobs that ended more than `days` ago; returns how many. */
export async function deleteExpired(
  parts: {
    database: Database;
    clock: Clock;
    writer: Writer;
    /** How far the outbox has been read; null where it has no reader. */
    readTo: ReaderCursor | null;
    /** Deletes what other slices keep about jobs, in the transaction that deletes these. */
    removeOfJobs(tx: Transaction, jobIds: readonly string[]): Promise<void>;
  },
  days: number,
): Promise<number> {
  const { database, clock, writer, readTo, removeOfJobs } = parts;
  const now = clock.now();
  const before = now - days * dayMs;
  const deleted = await deleteInBatches(database, jobsMax, (tx) =>
    deleteBatch(tx, before, writer, removeOfJobs),
  );
  await deleteAll(database, rowsMax, (tx) => deleteOldEvents(tx, before, rowsMax, readTo));
  await deleteAll(database, rowsMax, (tx) => deleteOldKeys(tx, now - idempotencyMs, rowsMax));
  let from = 0;
  await deleteAll(database, rowsMax, async (tx) => {
    const keys = await deleteOldJobKeys(tx, { from, before: now - dayMs }, rowsMax);
    tx.afterCommit(() => {
      from = keys.from;
    });
    return keys.deleted;
  });
  await database.write(async (tx) => {
    // In the order in which accepting and settling change them.
    await foldConversationCounts(tx, writer);
    await jobCounts.fold(tx, writer);
  });
  return deleted;
}

async function deleteBatch(
  tx: Transaction,
  before: number,
  writer: Writer,
  removeOfJobs: (tx: Transaction, jobIds: readonly string[]) => Promise<void>,
): Promise<DeletedBatch> {
  // A job ends after it was accepted, so the order of ids bounds the search.
  const age = { before: idFloor(before), ended_before: before };
  const found = await findEndedJobs(tx, { ...age, limit: jobsMax });
  // Every process does this: each job is counted by the one that deletes it.
  const jobs = await deleteJobs(
    tx,
    found.map(({ id }) => id),
  );
  const ids = jobs.map(({ id }) => id);
  await keepCountsOfBatches(tx, jobs);
  await removeSteps(tx, ids);
  await removeOfJobs(tx, ids);
  await forgetJobs(tx, jobs, writer);
  await jobCounts.change(
    tx,
    writer,
    jobs.map((kind) => ({ kind, from: kind.status, to: null })),
  );
  return { found: found.length, deleted: jobs.length };
}
