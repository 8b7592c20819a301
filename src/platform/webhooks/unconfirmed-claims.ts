/**
 * Claims of deliveries whose commit was not confirmed: no request was sent for them. They are given back as soon as the
 * database answers, instead of at the end of their lease, and no attempt is charged.
 */

import { UnconfirmedWrites } from '../../core/leases/unconfirmed-writes.ts';
import type { Logger } from '../../kernel/log.ts';
import {
  changeDeliveryCounts,
  type DeliveryClaim,
  giveBackDeliveries,
} from './deliveries.store.ts';
import type { DeliveriesDeps } from './new-deliveries.ts';

export type UnconfirmedClaims = UnconfirmedWrites<DeliveryClaim>;

export function openUnconfirmedClaims(
  base: DeliveriesDeps & { readonly log: Logger },
  leaseMs: number,
): UnconfirmedClaims {
  return new UnconfirmedWrites(
    {
      findCommitted: (claims) => giveBack(base, claims),
      settle: ({ id, epoch }) =>
        base.queue.sendHints('webhooks', [{ id, generation: epoch, delayMs: 0 }]),
      onError: (err) =>
        base.log.error({ err }, 'deliveries claimed without a confirmation are not given back'),
    },
    base.clock,
    leaseMs,
  );
}

/** The claims that were on record and are given back. */
function giveBack(
  { database, clock, writer }: DeliveriesDeps,
  claims: readonly DeliveryClaim[],
): Promise<DeliveryClaim[]> {
  // All in one order, so that two transactions never deadlock.
  const inOrder = claims.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return database.write(async (tx) => {
    const isGivenBack = await giveBackDeliveries(tx, inOrder, clock.now());
    const given = inOrder.filter((_, i) => isGivenBack[i]);
    await changeDeliveryCounts(
      tx,
      writer,
      given.map(({ webhook_id }) => ({ kind: { webhook_id }, from: 'delivering', to: 'pending' })),
    );
    return given;
  });
}
