/**
 * Deliver: adds the delivery of a hint to its host's lane. When the lane has a slot, the deliverer claims
 * the delivery (attempt charged, lease taken), sends the signed request and settles the outcome. The
 * database decides whether a hint is still true. Each claim reads the webhook's url and secret, so a
 * change of them applies from the next attempt on.
 */
import { Batch } from '../../adapters/database/batch.ts';
import type { Transaction } from '../../adapters/database/database.ts';
import type { SigningSecrets } from '../../adapters/database/signing-secrets.ts';
import type { Context } from '../../core/context/context.ts';
import { claimOfEach } from '../../core/leases/claims.ts';
import { settlePatiently } from '../../core/leases/settle-patiently.ts';
import { DecryptionError } from '../../kernel/encryption.ts';
import {
  type ClaimedDelivery,
  claimDeliveries,
  type DeliveryClaim,
  deliveryCounts,
  findWaiting,
} from './deliveries.store.ts';
import { Lanes, quickMs, type WasQuick } from './lanes.ts';
import { messageHeaders } from './message.ts';
import { type AttemptResult, resultOf, type Sender } from './send.ts';
import type { DeliverySettler, Settlement } from './settle.ts';
import type { UnconfirmedDeliveryClaims } from './unconfirmed-claims.ts';
import { findTargets, type Target } from './webhooks.store.ts';

/** Hints whose deliveries one query reads. */
const hintsMax = 500;
const unreadableSecret =
  'The signing secret cannot be decrypted: the platform has another ENCRYPTION_KEY than the one it was stored under; put that back, or set a new secret';

interface DelivererTimes {
  /** After this time without a settlement, the sweep ends the attempt as lost. */
  readonly leaseMs: number;
  /** The assumed clock skew between processes: a row that is due within this time counts as due. */
  readonly clockSkewMs?: number | undefined;
}

interface DelivererParts {
  readonly secrets: SigningSecrets;
  readonly sender: Sender;
  readonly settler: DeliverySettler;
  /** Takes the claims whose commit was not confirmed. */
  readonly unconfirmed: UnconfirmedDeliveryClaims;
}

interface Claim {
  /** The delivery's id. */
  readonly id: string;
  readonly delivery: ClaimedDelivery;
  readonly target: Target;
}

export class Deliverer {
  readonly #context: Context;
  readonly #parts: DelivererParts;
  readonly #times: DelivererTimes;
  readonly #lanes = new Lanes((id) => this.#deliver(id));
  readonly #stopping = new AbortController();
  readonly #claims: Batch<string, Claim | null>;
  readonly #addToLane = coalesce(hintsMax, (ids: readonly string[]) => this.#addToLanes(ids));

  constructor(context: Context, parts: DelivererParts, times: DelivererTimes) {
    this.#context = context;
    this.#parts = parts;
    this.#times = times;
    this.#claims = new Batch(context.database, (tx, ids) => this.#claimBatch(tx, ids));
  }

  /** Reads the delivery of a hint; resolves when its lane has added or refused it. */
  handleHint(deliveryId: string): Promise<void> {
    return this.#addToLane(deliveryId);
  }

  /** Hosts for which enough deliveries wait in this process. */
  fullHosts(): string[] {
    return this.#lanes.fullHosts();
  }

  /** Starts no more; resolves when the attempts under way have ended. */
  stop(): Promise<void> {
    return this.#lanes.stop();
  }

  /** Aborts the attempts under way: they count as lost and are repeated at once. */
  abort(): void {
    this.#stopping.abort();
  }

  /** Adds the deliveries that are due to the lanes of their hosts. */
  async #addToLanes(ids: readonly string[]): Promise<void> {
    const { database, clock } = this.#context;
    const { clockSkewMs = 0 } = this.#times;
    const found = await findWaiting(database.read, { ids, now: clock.now() + clockSkewMs });
    for (const { id, host, organization_id } of found) this.#lanes.add(host, id, organization_id);
  }

  /** Claims the deliveries that are due; null for the others, in the order of `ids`. */
  async #claimBatch(tx: Transaction, ids: readonly string[]): Promise<(Claim | null)[]> {
    const { clock, writer } = this.#context;
    const { leaseMs, clockSkewMs = 0 } = this.#times;
    const now = clock.now();
    const times = { now, due_by: now + clockSkewMs, lease_until: now + leaseMs };
    const claimed = await claimDeliveries(tx, { ids, ...times });
    tx.ifUncertain(() => this.#parts.unconfirmed.add(claimed.map(claimIdentity)));
    const webhookIds = new Set(claimed.map(({ webhook_id }) => webhook_id));
    const found = await findTargets(tx, { ids: [...webhookIds] });
    const changes = claimed.map(({ webhook_id }) => ({
      kind: { webhook_id },
      from: 'pending' as const,
      to: 'delivering' as const,
    }));
    await deliveryCounts.change(tx, writer, changes);
    const targets = new Map(found.map((target) => [target.id, target]));
    const targeted = claimed.flatMap((delivery) => {
      const target = targets.get(delivery.webhook_id);
      return target === undefined ? [] : [{ id: delivery.id, delivery, target }];
    });
    return claimOfEach(ids, targeted);
  }

  /** Makes one attempt; whether the receiver answered quickly, null when none was made. Never rejects. */
  async #deliver(deliveryId: string): Promise<WasQuick> {
    try {
      const claim = await this.#claims.add(deliveryId);
      return claim === null ? null : await this.#attempt(claim);
    } catch (err) {
      const message = 'a delivery went wrong; it will be tried again';
      this.#context.log.error({ err, delivery_id: deliveryId }, message);
      return null;
    }
  }

  /** Sends one attempt and settles it; whether the receiver answered quickly. */
  async #attempt(claim: Claim): Promise<boolean> {
    const { clock } = this.#context;
    const { delivery } = claim;
    const begun = clock.monotonic();
    const result = await this.#request(claim);
    const tookMs = Math.round(clock.monotonic() - begun);
    const startedAt = delivery.started_at ?? clock.now();
    await this.#settle({ delivery, result, startedAt, tookMs });
    return result.status !== null && tookMs <= quickMs;
  }

  /** Signs the request and sends it. */
  async #request({ delivery, target }: Claim): Promise<AttemptResult> {
    const { body, attempts, is_test, redelivery_of } = delivery;
    const { signal } = this.#stopping;
    let secret: string;
    try {
      secret = this.#parts.secrets.open('webhooks', target, target);
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error;
      // Retried like any refused attempt, because the operator may restore the right key.
      const unanswered = { status: null, error: unreadableSecret, response: null };
      return resultOf(unanswered, signal.aborted);
    }
    return this.#parts.sender.send({
      url: target.url,
      headers: messageHeaders(delivery, secret, this.#context.clock.now()),
      body,
      isFresh: attempts > 1 || is_test === 1 || redelivery_of !== null,
      signal,
    });
  }

  /** Settles the attempt and logs what is unusual about it. */
  async #settle(settlement: Settlement): Promise<void> {
    const { log } = this.#context;
    const { delivery, result } = settlement;
    const { id: delivery_id, webhook_id, attempts } = delivery;
    const status = await settlePatiently(
      () => this.#parts.settler.settle(settlement),
      () => {
        if (this.#stopping.signal.aborted) return false;
        log.warn({ delivery_id }, 'an attempt waits to be recorded');
        return true;
      },
    );
    if (status === undefined) {
      log.error({ delivery_id }, 'an attempt could not be recorded before the stop');
    } else if (status === null) {
      log.info({ delivery_id }, 'an attempt ended after its delivery had');
    } else if (result.outcome !== 'accepted') {
      const why = { http_status: result.status, error: result.error };
      const failed = { delivery_id, webhook_id, attempt: attempts, status, ...why };
      log.info(failed, 'an attempt to deliver failed');
    }
  }
}

/** Without the body, which would be kept for as long as the claim is searched for. */
function claimIdentity({ id, webhook_id, epoch, started_at }: ClaimedDelivery): DeliveryClaim {
  return { id, webhook_id, epoch, started_at };
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
