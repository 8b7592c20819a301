/**
 * Recover: what makes the queue and every process dispensable. The sweep announces deliveries that are
 * due, and ends attempts whose lease has ended because the process that sent them is gone. Retention
 * deletes what is old. Both run at each start and from then on at intervals.
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
import { changeDeliveryCounts, findExpired, foldDeliveryCounts } from './deliveries.store.ts';
import { deleteEmptyCounts } from './ending.store.ts';
import { endLeftovers } from './ending.ts';
import {
  bringDeliveriesForward,
  deleteDeliveries,
  findDue,
  findEnded,
  findWaitingWebhooks,
} from './recovery.store.ts';
import type { Settle } from './settle.ts';

/** Lost attempts that are ended together. */
const expiredMax = 500;
/** Webhooks for whose deliveries one sweep sends hints; the next sweep continues after them. */
const webhooksMax = 500;
/** Hints that one sweep sends, in all and for one webhook. */
const hintsMax = 10_000;
const hintsOfOne = { most: 1_000, least: 20 };
/** Deliveries deleted in one transaction. */
const deletedMax = 500;

export interface DeliveryRecovery {
  /** One pass. */
  sweep(): Promise<void>;
  /**
   * Ends every attempt at once, whatever its lease: for the start of a process that is the only
   * one, when nobody can still be sending anything.
   */
  endOrphans(): Promise<void>;
  /** Deletes deliveries that were made more than `days` ago and have ended; how many. */
  deleteExpired(days: number): Promise<number>;
}

export function createDeliveryRecovery(parts: {
  database: Database;
  queue: Queue;
  settle: Settle;
  /** Hosts to which enough is waiting in this process. */
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
  /** Whether deliveries are still to be brought forward. */
  let isSetBack = false;
  let hintedAt = Number.NEGATIVE_INFINITY;
  /** The webhook that the last sweep ended with. */
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
          return settle({ delivery, ending: 'lost', attempt });
        }),
      );
      // One that cannot be ended is no reason to leave the others, or to stop the start.
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

  /** After the clock was set back, else the deliveries that wait would wait for as long as that. */
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
      // Each part for itself: where one fails, the others are as urgent as before.
      await eachOf([
        async () => {
          if (!isInGrace() && isLeaseOver) await endExpired(clock.now());
        },
        () => endLeftovers(database, clock.now(), writer),
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

/** Does one after the other, whatever becomes of each; then throws the first error that there was. */
async function eachOf(parts: readonly (() => Promise<void>)[]): Promise<void> {
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
