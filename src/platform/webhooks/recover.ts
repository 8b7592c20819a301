/**
 * Recover: repairs what a lost queue or a dead process leaves behind. The sweep ends the attempts whose
 * lease has expired, goes on with the cleanup of webhooks, and sends hints for due deliveries. It runs at
 * each start and then at intervals.
 */

import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { sweepNumber } from '../../adapters/queue/queue.ts';
import type { Context } from '../../core/context/context.ts';
import { LeaseSweep } from '../../core/leases/lease-sweep.ts';
import { continueCleanup } from './cleanup.ts';
import type { Deliverer } from './deliver.ts';
import { type ClaimedDelivery, findExpired } from './deliveries.store.ts';
import { bringDeliveriesForward, findDue, findWaitingWebhooks } from './recovery.store.ts';
import type { DeliverySettler } from './settle.ts';

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

export interface DeliveryTimes {
  /** See `Deliverer`. */
  readonly leaseMs: number;
  /**
   * How long the sweep leaves a due delivery to each hint that was sent for it. The process that took
   * the hint may be another one, in which the delivery waits for a slot of its host.
   */
  readonly hintRetryMs?: number | undefined;
  /** See `LeaseSweep`. */
  readonly graceMs?: number | undefined;
}

export class DeliveryRecovery extends LeaseSweep<ClaimedDelivery> {
  readonly #context: Context;
  readonly #settler: DeliverySettler;
  readonly #deliverer: Deliverer;
  readonly #times: DeliveryTimes;
  #hintedAt = Number.NEGATIVE_INFINITY;
  /** The last webhook for which the previous sweep sent hints. */
  #after = '';

  constructor(
    context: Context,
    { settler, deliverer }: { settler: DeliverySettler; deliverer: Deliverer },
    times: DeliveryTimes,
  ) {
    super(context, times.graceMs);
    this.#context = context;
    this.#settler = settler;
    this.#deliverer = deliverer;
    this.#times = times;
  }

  protected override findExpired(db: Handle, now: number, limit: number) {
    return findExpired(db, { now, limit });
  }

  protected override settleLost(delivery: ClaimedDelivery): Promise<unknown> {
    const now = this.#context.clock.now();
    const startedAt = delivery.started_at ?? now;
    const tookMs = Math.max(0, now - startedAt);
    return this.#settler.settle({ delivery, result: lost, startedAt, tookMs });
  }

  protected override bringForward(tx: Transaction, now: number): Promise<void> {
    return bringDeliveriesForward(tx, now, this.#times.leaseMs);
  }

  protected override reportLost({ length }: readonly ClaimedDelivery[]): void {
    const message = 'attempts to deliver were lost with their process';
    this.#context.log.warn({ attempts: length }, message);
  }

  protected override reportError(err: unknown, { id }: ClaimedDelivery): void {
    this.#context.log.error({ err, delivery_id: id }, 'a lost attempt to deliver is not ended');
  }

  protected override further() {
    const { database, clock, writer } = this.#context;
    return [() => continueCleanup(database, clock.now(), writer), () => this.#sendDueHints()];
  }

  async #sendDueHints(): Promise<void> {
    const { database, queue, clock } = this.#context;
    const { hintRetryMs = 0 } = this.#times;
    // Reading due deliveries is useless while enough hints wait, or while none can be sent.
    if (!queue.isConnected() || !queue.isRunningLow('webhooks')) return;
    if (clock.monotonic() - this.#hintedAt < hintRetryMs) return;
    this.#hintedAt = clock.monotonic();
    const now = clock.now() - hintRetryMs;
    const generation = hintRetryMs === 0 ? 0 : `sweep-${sweepNumber(now)}`;
    const webhooks = await findWaitingWebhooks(database.read, {
      after: this.#after,
      full: this.#deliverer.fullHosts(),
      now,
      limit: webhooksMax,
    });
    this.#after = webhooks.length < webhooksMax ? '' : (webhooks.at(-1)?.id ?? '');
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
}
