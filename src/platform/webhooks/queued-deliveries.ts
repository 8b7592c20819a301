/** The deliveries of all organizations as a queue. */
import type { Handle } from '../../adapters/database/database.ts';
import { countDeliveries } from './delivery-log.store.ts';
import { countPending, countUnderWay, findOverdue, overdueMax } from './recovery.store.ts';

/**
 * How many deliveries are due, come later and are under way, and since when the oldest is due. They are counted to 10,000. Where
 * more are due or more come later, the kept counts of all pending ones say how many; where more of both, these are lower bounds.
 */
export async function readQueuedDeliveries(db: Handle, now: number) {
  const [{ n: due, oldest }, later, running] = await Promise.all([
    findOverdue(db, now),
    countPending(db, { after: now }),
    countUnderWay(db, {}),
  ]);
  const counted = { due, later: Number(later?.n ?? 0) };
  const isCut = { due: due >= overdueMax, later: counted.later >= overdueMax };
  const shared = {
    isAtLeast: isCut.due && isCut.later,
    running: Number(running?.n ?? 0),
    oldest: oldest === undefined ? undefined : Number(oldest),
  };
  if (isCut.due === isCut.later) return { ...counted, ...shared };
  const pending = (await countDeliveries(db)).find(({ status }) => status === 'pending')?.n ?? 0;
  const rest = Math.max(overdueMax, pending - Math.min(counted.due, counted.later));
  return { ...counted, ...(isCut.due ? { due: rest } : { later: rest }), ...shared };
}
