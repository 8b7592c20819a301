/**
 * Deliver: adds the delivery of a hint to its host's lane. When the lane has a slot, the deliverer claims
 * the delivery (attempt charged, lease taken), sends the signed request and settles the outcome. The
 * database decides whether a hint is still true. Each claim reads the webhook's url and secret, so a
 * change of them applies from the next attempt on.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { createBatch } from '../database/batch.ts';
import type { Writer } from '../database/counts.ts';
import type { Database } from '../database/database.ts';
import type { SigningSecrets } from '../database/signing-secrets.ts';
import type { DeliveryStatus } from '../database/tables.ts';
import type { Clock } from '../kernel/clock.ts';
import { DecryptionError } from '../kernel/encryption.ts';
import { isUnavailable } from '../kernel/errors.ts';
import type { Logger } from '../kernel/log.ts';
import {
  type ClaimedDelivery,
  changeDeliveryCounts,
  claimDeliveries,
  findWaiting,
} from './deliveries.store.ts';
import { createLanes, quickMs, type WasQuick } from './lanes.ts';
import { messageHeaders } from './message.ts';
import type { Answer, Send } from './send.ts';
import type { Settle, Settlement } from './settle.ts';
import type { AttemptOutcome } from './states.ts';
import { findTargets, type Target } from './webhooks.store.ts';

/** Hints that one query looks up. */
const lookUpMax = 500;
/** Statuses with a Location to follow; 304, for example, has none. */
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const unreadableSecret =
  'The signing secret cannot be decrypted: the platform has another ENCRYPTION_KEY than the one it was stored under; put that back, or set a new secret';
/** Wait before the deliverer tries again to record an attempt. */
const settleRetryMs = 500;

export interface Deliverer {
  /** Looks up the delivery of a hint; resolves when its lane has added or refused it. */
  handleHint(deliveryId: string): Promise<void>;
  /** Hosts for which enough deliveries wait in this process. */
  fullHosts(): string[];
  /** Starts no more; resolves when the attempts under way have ended. */
  stop(): Promise<void>;
  /** Aborts the attempts under way: they count as lost and are repeated at once. */
  abort(): void;
}

interface Claim {
  readonly delivery: ClaimedDelivery;
  readonly target: Target;
}

export function createDeliverer(parts: {
  database: Database;
  send: Send;
  secrets: Pick<SigningSecrets, 'open'>;
  settle: Settle;
  clock: Clock;
  log: Logger;
  writer: Writer;
  /** After this time without a settlement, the sweep ends the attempt as lost. */
  leaseMs: number;
  /** The clocks of two processes may differ by this much: a row that is due within it is due now. */
  clockSkewMs?: number;
}): Deliverer {
  const { database, send, secrets, settle, clock, log, writer, leaseMs, clockSkewMs = 0 } = parts;
  const stopping = new AbortController();
  const lanes = createLanes(deliver);

  const lookUp = coalesce(lookUpMax, async (ids: readonly string[]) => {
    const found = await findWaiting(database.read, ids, clock.now() + clockSkewMs);
    for (const { id, host } of found) lanes.add(host, id);
  });

  const claim = createBatch<string, Claim | null>(database, async (tx, ids) => {
    const now = clock.now();
    const claimed = await claimDeliveries(tx, ids, now, now + leaseMs, now + clockSkewMs);
    const webhookIds = new Set(claimed.map(({ webhook_id }) => webhook_id));
    const found = await findTargets(tx, [...webhookIds]);
    await changeDeliveryCounts(
      tx,
      writer,
      claimed.map(({ webhook_id }) => ({
        kind: { webhook_id },
        from: 'pending',
        to: 'delivering',
      })),
    );
    const targets = new Map(found.map((target) => [target.id, target]));
    const deliveries = new Map(claimed.map((delivery) => [delivery.id, delivery]));
    return ids.map((id) => {
      const delivery = deliveries.get(id);
      const target = targets.get(delivery?.webhook_id ?? '');
      // An id that occurs a second time in the batch is claimed only once.
      deliveries.delete(id);
      return delivery === undefined || target === undefined ? null : { delivery, target };
    });
  });

  async function deliver(deliveryId: string): Promise<WasQuick> {
    try {
      const claimed = await claim(deliveryId);
      return claimed === null ? null : await attempt(claimed);
    } catch (err) {
      log.error({ err, delivery_id: deliveryId }, 'a delivery went wrong; it will be tried again');
      return null;
    }
  }

  /** Sends one attempt and settles it; whether the receiver answered quickly. */
  async function attempt({ delivery, target }: Claim): Promise<boolean> {
    const begun = clock.monotonic();
    const { id, attempts } = delivery;
    const answer = await request({ delivery, target });
    const tookMs = Math.round(clock.monotonic() - begun);
    const outcome = outcomeOf(answer, stopping.signal);
    const status = await settlePatiently({
      delivery,
      outcome,
      attempt: {
        started_at: delivery.started_at ?? clock.now(),
        duration_ms: tookMs,
        status: answer.status,
        error: failureOf(answer, outcome),
        response: answer.response,
      },
    });
    if (status === null) log.info({ delivery_id: id }, 'an attempt ended after its delivery had');
    else if (outcome !== 'accepted') {
      const { webhook_id } = delivery;
      const why = { http_status: answer.status, error: answer.error };
      log.info(
        { delivery_id: id, webhook_id, attempt: attempts, status, ...why },
        'an attempt to deliver failed',
      );
    }
    return answer.status !== null && tookMs <= quickMs;
  }

  /** Signs the request and sends it. */
  async function request({ delivery, target }: Claim): Promise<Answer> {
    const { body, attempts, is_test, redelivery_of } = delivery;
    let secret: string;
    try {
      secret = secrets.open('webhooks', target, target);
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error;
      // Retried like any refused attempt, because the operator may restore the right key.
      return { status: null, error: unreadableSecret, response: null };
    }
    return send({
      url: target.url,
      headers: messageHeaders(delivery, secret, clock.now()),
      body,
      isFresh: attempts > 1 || is_test === 1 || redelivery_of !== null,
      signal: stopping.signal,
    });
  }

  /** Retries until the database is available again, or the platform stops. */
  async function settlePatiently(settlement: Settlement): Promise<DeliveryStatus | null> {
    for (;;) {
      try {
        return await settle(settlement);
      } catch (error) {
        if (!isUnavailable(error) || stopping.signal.aborted) throw error;
        log.warn({ delivery_id: settlement.delivery.id }, 'an attempt waits to be recorded');
        await elapsed(settleRetryMs);
      }
    }
  }

  return {
    handleHint: lookUp,
    fullHosts: () => lanes.full(),
    stop: () => lanes.stop(),
    abort: () => stopping.abort(),
  };
}

function outcomeOf({ status }: Answer, stopping: AbortSignal): AttemptOutcome {
  if (status === null) return stopping.aborted ? 'lost' : 'refused';
  if (status >= 200 && status < 300) return 'accepted';
  return status === 410 ? 'gone' : 'refused';
}

/** Why an attempt failed, as a sentence; null when it was accepted. */
function failureOf({ status, error }: Answer, outcome: AttemptOutcome): string | null {
  if (outcome === 'accepted') return null;
  if (outcome === 'lost') return 'The platform stopped before the receiver had answered';
  if (status === null) return error;
  if (status === 410) return 'The receiver answered 410: it wants no more of this delivery';
  if (redirects.has(status)) {
    return `The receiver answered ${status}: redirects are not followed`;
  }
  return `The receiver answered ${status}`;
}

/**
 * Collects the items that arrive while `work` runs, up to `max`, and hands them to its next call
 * together. Each caller's promise ends with the call that had its item.
 */
function coalesce<I>(
  max: number,
  work: (items: readonly I[]) => Promise<void>,
): (item: I) => Promise<void> {
  let next: { items: I[]; done: Promise<void> } | null = null;
  let last = Promise.resolve();
  return (item) => {
    if (next === null || next.items.length >= max) {
      const items: I[] = [];
      const group = { items, done: Promise.resolve() };
      group.done = last.then(() => {
        if (next === group) next = null;
        return work(items);
      });
      last = group.done.catch(() => {});
      next = group;
    }
    next.items.push(item);
    return next.done;
  };
}
