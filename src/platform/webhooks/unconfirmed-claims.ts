/**
 * Claims of deliveries whose commit was not confirmed: no request was sent for them. They are given back as soon as the
 * database answers, instead of at the end of their lease, and no attempt is charged.
 */

import type { Context } from '../../core/context/context.ts';
import { UnconfirmedWrites } from '../../core/leases/unconfirmed-writes.ts';
import { type DeliveryClaim, deliveryCounts, giveBackDeliveries } from './deliveries.store.ts';

export class UnconfirmedDeliveryClaims extends UnconfirmedWrites<DeliveryClaim> {
  constructor(context: Context, leaseMs: number) {
    const { queue, clock, log } = context;
    const rows = {
      takeCommitted: (claims: readonly DeliveryClaim[]) => giveBack(context, claims),
      settle: ({ id, epoch }: DeliveryClaim) =>
        queue.sendHints('webhooks', [{ id, generation: epoch, delayMs: 0 }]),
      onError: (err: unknown) =>
        log.error({ err }, 'deliveries claimed without a confirmation are not given back'),
    };
    super(rows, clock, leaseMs);
  }
}

/** The claims that were on record and are given back. */
function giveBack(
  { database, clock, writer }: Context,
  claims: readonly DeliveryClaim[],
): Promise<DeliveryClaim[]> {
  // All in one order, so that two transactions never deadlock.
  const inOrder = claims.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return database.write(async (tx) => {
    const isGivenBack = await giveBackDeliveries(tx, inOrder, clock.now());
    const given = inOrder.filter((_, i) => isGivenBack[i]);
    await deliveryCounts.change(
      tx,
      writer,
      given.map(({ webhook_id }) => ({ kind: { webhook_id }, from: 'delivering', to: 'pending' })),
    );
    return given;
  });
}
