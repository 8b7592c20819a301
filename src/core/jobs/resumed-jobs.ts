/**
 * Resumed jobs: a job that goes on from the record of a failed or cancelled one, in the same conversation. It gets a copy of
 * the steps that have ended, in the transaction that accepts it, so its run finds them as a repeated attempt does. They cost
 * nothing in it: they were charged to the job that took them. Once the conversation has gone on, the record is not resumed,
 * so nothing is done twice.
 */

import type { Transaction } from '../../adapters/database/database.ts';
import { copyEndedSteps } from '../journal/copied-steps.ts';
import { jobsOnRecord } from '../journal/taken-over.ts';
import type { WorkRequest } from './accept.ts';
import type { NewJob } from './jobs.store.ts';
import { findUserMessage, listPassed } from './resumed-jobs.store.ts';

/** Jobs whose records one job goes on from at most: each of them was copied. */
export const resumesMax = 50;

/** The jobs whose records requests would go on from, and whose conversations have gone on. The conversations are locked. */
export async function listSuperseded(
  tx: Transaction,
  requests: readonly WorkRequest[],
): Promise<ReadonlySet<string>> {
  const ids = requests.flatMap(({ resumes, retryOf }) => (resumes && retryOf) ?? []);
  if (ids.length === 0) return new Set();
  return new Set((await listPassed(tx, { ids })).map(({ id }) => id));
}

/** Gives a job the record of the one that it resumes. */
export async function takeOverRecord(
  tx: Transaction,
  { id, retry_of }: Pick<NewJob, 'id' | 'retry_of'>,
): Promise<void> {
  if (retry_of !== null) await copyEndedSteps(tx, retry_of, id);
}

/** The jobs whose users' messages are in their conversations already, because a job that they go on from had begun in them. */
export async function listWithUserMessage(
  tx: Transaction,
  jobs: readonly NewJob[],
): Promise<ReadonlySet<NewJob>> {
  const withMessage = new Set<NewJob>();
  for (const job of jobs) {
    if (job.resumes === null) continue;
    const { conversation_id } = job;
    const message = await findUserMessage(tx, { conversation_id, ids: jobsOnRecord(job) });
    if (message !== undefined) withMessage.add(job);
  }
  return withMessage;
}
