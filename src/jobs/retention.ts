/**
 * Retention: ended jobs, their conversations and what else is old are deleted a batch at a time, so
 * that the store stays as large as what is wanted of it. Never touches a job that has not ended.
 */
import { foldConversationCounts, forgetConversations } from '../conversations/record.ts';
import type { Writer } from '../database/counts.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import { idFloor } from '../kernel/ids.ts';
import { idempotencyMs } from './accept.ts';
import { changeJobCounts, foldJobCounts } from './jobs.store.ts';
import { deleteJobs, deleteOldEvents, deleteOldKeys, findEndedJobs } from './retention.store.ts';

/** Jobs deleted in one transaction, each with all that was said in it. */
const jobsMax = 100;
/** Rows of other kinds deleted in one transaction. */
const rowsMax = 1_000;
const dayMs = 24 * 60 * 60 * 1000;

/** Deletes what was accepted more than `days` ago and has ended; how many jobs that were. */
export async function deleteExpired(
  parts: { database: Database; clock: Clock; writer: Writer },
  days: number,
): Promise<number> {
  const { database, clock, writer } = parts;
  const now = clock.now();
  const before = now - days * dayMs;
  const deleted = await inBatches(database, jobsMax, (tx) =>
    deleteBatch(tx, idFloor(before), writer),
  );
  await inBatches(database, rowsMax, async (tx) => all(await deleteOldEvents(tx, before, rowsMax)));
  await inBatches(database, rowsMax, async (tx) =>
    all(await deleteOldKeys(tx, now - idempotencyMs, rowsMax)),
  );
  await database.write(async (tx) => {
    // In the order in which accepting and settling change them.
    await foldConversationCounts(tx, writer);
    await foldJobCounts(tx, writer);
  });
  return deleted;
}

const all = (found: number): Batch => ({ found, deleted: found });

/** Rows that a batch found old, and those of them that no other process had deleted meanwhile. */
interface Batch {
  readonly found: number;
  readonly deleted: number;
}

/** Repeats a batch, each in a transaction of its own, until one was not full. */
async function inBatches(
  database: Database,
  max: number,
  batch: (tx: Transaction) => Promise<Batch>,
): Promise<number> {
  let total = 0;
  for (;;) {
    const { found, deleted } = await database.write(batch);
    total += deleted;
    if (found < max) return total;
  }
}

async function deleteBatch(tx: Transaction, before: string, writer: Writer): Promise<Batch> {
  const found = await findEndedJobs(tx, before, jobsMax);
  // Every process does this: each job is counted by the one that deletes it.
  const jobs = await deleteJobs(
    tx,
    found.map(({ id }) => id),
  );
  await forgetConversations(
    tx,
    jobs.map((job) => job.conversation_id),
    writer,
  );
  await changeJobCounts(
    tx,
    writer,
    jobs.map((kind) => ({ kind, from: kind.status, to: null })),
  );
  return { found: found.length, deleted: jobs.length };
}
