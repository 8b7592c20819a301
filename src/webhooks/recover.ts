/**
 * Recover: repairs what a lost queue or a dead process leaves behind. The sweep sends hints for due
 * deliveries, and ends attempts whose lease has expired because their process died. Retention deletes
 * old deliveries. Both run at each start and then at intervals.
 */
import type { Writer } from '../database/counts.ts';
import type { Database } from '../database/database.ts';
import { deleteInBatches } from '../database/in-batches.ts';
import { type Clock, dayMs } from '../kernel/clock.ts';
import { idFloor } from '../kernel/ids.ts';
import type { Logger } from '../kernel/log.ts';
import { createSetBackWatch, setBackMs } from '../kernel/set-back.ts';
import { createStallDetector } from '../kernel/stall-detector.ts';
import { type Queue, roundOf } from '../queue/queue.ts';
import { deleteEmptyCounts } from './cleanup.store.ts';
import { continueCleanup } from './cleanup.ts';
import { changeDeliveryCounts, findExpired, foldDeliveryCounts } from './deliveries.store.ts';
import {
  bringDeliveriesForward,
  deleteDeliveries,
  findDue,
  findEnded,
  findWaitingWebhooks,
} from './recovery.store.ts';
import type { Settle } from './settle.ts';

/** Lost attempts that one query finds. */
const expiredMax = 500;
/** Webhooks for whose deliveries one sweep sends hints; the next sweep continues after them. */
const webhooksMax = 500;
/** Hints that one sweep sends, in all and for one webhook. */
const hintsMax = 10_000;
const hintsOfOne = { most: 1_000, least: 20 };
/** Deliveries deleted in one transaction. */
const deletedMax = 500;

export interface DeliveryRecovery {
  /** Makes one pass. */
  sweep(): Promise<void>;
  /**
   * Ends every attempt under way, also with a valid lease: for the start of an only process, when no
   * other one can still be sending.
   */
  endOrphans(): Promise<void>;
  /** Deletes deliveries that were created more than `days` ago and have ended; how many. */
  deleteExpired(days: number): Promise<number>;
}

export function createDeliveryRecovery(parts: {
  database: Database;
  queue: Queue;
  settle: Settle;
  /** Hosts for which enough deliveries wait in this process. */
  fullHosts(): string[];
  clock: Clock;
  log: Logger;
  writer: Writer;
  /** See `createDeliverer`. */
  leaseMs: number;
  /**
   * How long the sweep leaves a due delivery to each hint that was sent for it. The process that took
   * the hint may be another one, in which the delivery waits for a slot of its host.
   */
  hintRetryMs?: number;
  /** After a stall: how long the processes that made attempts may still settle those whose lease has ended. */
  graceMs?: number;
}): DeliveryRecovery {
  const { database, queue, settle, fullHosts, clock, log, writer } = parts;
  const { leaseMs, hintRetryMs = 0, graceMs = 0 } = parts;
  const isInGrace = createStallDetector(clock, graceMs);
  const wasSetBack = createSetBackWatch(clock);
  /** Whether the clock was set back and the deliveries were not yet brought forward. */
  let isSetBack = false;
  let hintedAt = Number.NEGATIVE_INFINITY;
  /** The last webhook for which the previous sweep sent hints. */
  let after = '';

  async function endExpired(leasedUntil: number): Promise<void> {
    for (;;) {
      const expired = await findExpired(database.read, leasedUntil, expiredMax);
      const settled = await Promise.allSettled(
        expired.map((delivery) => {
          const startedAt = delivery.started_at ?? clock.now();
          const attempt = {
            started_at: startedAt,
            duration_ms: Math.max(0, clock.now() - startedAt),
            status: null,
            error: 'The process that sent it has gone',
            response: null,
          };
          return settle({ delivery, outcome: 'lost', attempt });
        }),
      );
      // One that cannot be ended must not keep the others from ending, or the process from starting.
      for (const [i, one] of settled.entries()) {
        if (one.status === 'fulfilled') continue;
        const delivery_id = expired[i]?.id;
        log.error({ err: one.reason, delivery_id }, 'a lost attempt to deliver is not ended');
      }
      const lost = settled.filter((one) => one.status === 'fulfilled' && one.value !== null).length;
      if (lost > 0)
        log.warn({ attempts: lost }, 'attempts to deliver were lost with their process');
      if (lost < expiredMax) return;
    }
  }

  /** After the clock was set back: without this, retries would come as much later as it was set back. */
  async function bringForward(): Promise<void> {
    isSetBack = wasSetBack() || isSetBack;
    if (!isSetBack) return;
    await database.write((tx) => bringDeliveriesForward(tx, clock.now(), leaseMs, setBackMs));
    isSetBack = false;
  }

  async function sendDueHints(): Promise<void> {
    if (clock.monotonic() - hintedAt < hintRetryMs) return;
    hintedAt = clock.monotonic();
    const now = clock.now() - hintRetryMs;
    const generation = hintRetryMs === 0 ? 0 : `sweep-${roundOf(now)}`;
    const full = fullHosts();
    const webhooks = await findWaitingWebhooks(database.read, {
      after,
      full,
      now,
      limit: webhooksMax,
    });
    after = webhooks.length < webhooksMax ? '' : (webhooks.at(-1)?.id ?? '');
    const { most, least } = hintsOfOne;
    const share = Math.floor(hintsMax / Math.max(1, webhooks.length));
    const limit = Math.max(least, Math.min(most, share));
    for (const { id } of webhooks) {
      const due = await findDue(database.read, id, now, limit);
      queue.sendHints(
        'webhooks',
        due.map((deliveryId) => ({ id: deliveryId, generation, delayMs: 0 })),
      );
    }
  }

  return {
    async sweep() {
      await bringForward();
      const isLeaseOver = (await findExpired(database.read, clock.now(), 1)).length > 0;
      // A part that fails must not keep the others from running.
      await runAll([
        async () => {
          if (!isInGrace() && isLeaseOver) await endExpired(clock.now());
        },
        () => continueCleanup(database, clock.now(), writer),
        async () => {
          // Reading due deliveries is useless while enough hints wait, or while none can be sent.
          if (queue.isConnected() && queue.isRunningLow('webhooks')) await sendDueHints();
        },
      ]);
    },

    endOrphans: () => endExpired(Number.MAX_SAFE_INTEGER),

    async deleteExpired(days) {
      const before = idFloor(clock.now() - days * dayMs);
      const total = await deleteInBatches(database, deletedMax, async (tx) => {
        const ids = await findEnded(tx, before, deletedMax);
        const rows = await deleteDeliveries(tx, ids);
        await changeDeliveryCounts(
          tx,
          writer,
          rows.map(({ webhook_id, status }) => ({
            kind: { webhook_id },
            from: status,
            to: null,
          })),
        );
        return { found: ids.length, deleted: rows.length };
      });
      await database.write((tx) => foldDeliveryCounts(tx, writer));
      await database.write((tx) => deleteEmptyCounts(tx));
      return total;
    },
  };
}

/** Runs one part after the other, also when one fails; then throws the first error. */
async function runAll(parts: readonly (() => Promise<void>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const part of parts) {
    try {
      await part();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
