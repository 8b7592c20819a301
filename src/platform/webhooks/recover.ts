/**
 * Recover: repairs what a lost queue or a dead process leaves behind. The sweep ends the attempts whose
 * lease has expired, goes on with the cleanup of webhooks, and sends hints for due deliveries. It runs at
 * each start and then at intervals.
 */

import { roundOf } from '../../adapters/queue/queue.ts';
import { createLeaseSweep, type LeaseSweep } from '../../core/leases/lease-sweep.ts';
import type { Logger } from '../../kernel/log.ts';
import { continueCleanup } from './cleanup.ts';
import { type ClaimedDelivery, findExpired } from './deliveries.store.ts';
import type { DeliveriesDeps } from './new-deliveries.ts';
import { bringDeliveriesForward, findDue, findWaitingWebhooks } from './recovery.store.ts';
import type { Settle } from './settle.ts';

/** Webhooks for whose deliveries one sweep sends hints; the next sweep continues after them. */
const webhooksMax = 500;
/** Hints that one sweep sends, in all and for one webhook. */
const hintsMax = 10_000;
const hintsOfOne = { most: 1_000, least: 20 };

const lost = {
  outcome: 'lost',
  status: null,
  error: 'The process that sent it has gone',
  response: null,
} as const;

export interface DeliveryRecoverDeps {
  readonly base: DeliveriesDeps & { readonly log: Logger };
  readonly settle: Settle;
  /** Hosts for which enough deliveries wait in this process. */
  fullHosts(): string[];
  readonly times: {
    /** See `createDeliverer`. */
    readonly leaseMs: number;
    /**
     * How long the sweep leaves a due delivery to each hint that was sent for it. The process that took
     * the hint may be another one, in which the delivery waits for a slot of its host.
     */
    readonly hintRetryMs?: number | undefined;
    /** See `createLeaseSweep`. */
    readonly graceMs?: number | undefined;
  };
}

interface RecoveryState extends DeliveryRecoverDeps {
  hintedAt: number;
  /** The last webhook for which the previous sweep sent hints. */
  after: string;
}

export function createDeliveryRecovery(deps: DeliveryRecoverDeps): LeaseSweep {
  const { database, clock, log, writer } = deps.base;
  const { leaseMs, graceMs } = deps.times;
  const state: RecoveryState = { ...deps, hintedAt: Number.NEGATIVE_INFINITY, after: '' };
  return createLeaseSweep<ClaimedDelivery>({
    database,
    clock,
    graceMs,
    rows: {
      findExpired: (db, now, limit) => findExpired(db, { now, limit }),
      settleLost: (delivery) => settleLost(deps, delivery),
      bringForward: (tx, now) => bringDeliveriesForward(tx, now, leaseMs),
      onLost: ({ length }) =>
        log.warn({ attempts: length }, 'attempts to deliver were lost with their process'),
      onError: (err, { id }) =>
        log.error({ err, delivery_id: id }, 'a lost attempt to deliver is not ended'),
    },
    further: [() => continueCleanup(database, clock.now(), writer), () => sendDueHints(state)],
  });
}

function settleLost({ base, settle }: DeliveryRecoverDeps, delivery: ClaimedDelivery) {
  const now = base.clock.now();
  const startedAt = delivery.started_at ?? now;
  return settle({ delivery, result: lost, startedAt, tookMs: Math.max(0, now - startedAt) });
}

async function sendDueHints(state: RecoveryState): Promise<void> {
  const { database, queue, clock } = state.base;
  const { hintRetryMs = 0 } = state.times;
  // Reading due deliveries is useless while enough hints wait, or while none can be sent.
  if (!queue.isConnected() || !queue.isRunningLow('webhooks')) return;
  if (clock.monotonic() - state.hintedAt < hintRetryMs) return;
  state.hintedAt = clock.monotonic();
  const now = clock.now() - hintRetryMs;
  const generation = hintRetryMs === 0 ? 0 : `sweep-${roundOf(now)}`;
  const webhooks = await findWaitingWebhooks(database.read, {
    after: state.after,
    full: state.fullHosts(),
    now,
    limit: webhooksMax,
  });
  state.after = webhooks.length < webhooksMax ? '' : (webhooks.at(-1)?.id ?? '');
  const { most, least } = hintsOfOne;
  const share = Math.floor(hintsMax / Math.max(1, webhooks.length));
  const limit = Math.max(least, Math.min(most, share));
  for (const { id } of webhooks) {
    const due = await findDue(database.read, { webhook_id: id, now, limit });
    queue.sendHints(
      'webhooks',
      due.map((delivery) => ({ ...delivery, generation, delayMs: 0 })),
    );
  }
}
