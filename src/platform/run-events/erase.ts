/** Erasure of the events of ended jobs: received events, their Idempotency-Keys, waits and positions. */
import type { Transaction } from '../../adapters/database/database.ts';
import { deleteEventKeys, listEventsOfJobs } from './erase.store.ts';
import { removeEventsTaken } from './untakeable.store.ts';
import { forgetJobs } from './waits.store.ts';

/**
 * Erases the events that the jobs have taken, and those that only they could take. Its caller removes their steps
 * afterwards: they name the events that were taken, which may be deleted already while their keys are not.
 */
export async function eraseEventsOfJobs(tx: Transaction, ids: readonly string[]): Promise<void> {
  const events = await listEventsOfJobs(tx, ids);
  if (events.length > 0) {
    await deleteEventKeys(tx, events);
    await removeEventsTaken(tx, events);
  }
  await forgetJobs(tx, ids);
}
