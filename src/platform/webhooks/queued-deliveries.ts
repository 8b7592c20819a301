/** The deliveries of all organizations as a queue. */
import type { Handle } from '../../adapters/database/database.ts';
import { countDeliveries } from './delivery-log.store.ts';
import { findOverdue } from './recovery.store.ts';

/** How many deliveries are due (counted to 10,000), pending at all and under way, and since when the oldest is due. */
export async function readQueuedDeliveries(db: Handle, now: number) {
  const [counts, overdue] = await Promise.all([countDeliveries(db), findOverdue(db, now)]);
  const of = (status: string) => counts.find((count) => count.status === status)?.n ?? 0;
  const pending = of('pending');
  return {
    due: overdue.n,
    pending,
    running: of('delivering'),
    oldest: overdue.oldest === undefined ? undefined : Number(overdue.oldest),
  };
}
