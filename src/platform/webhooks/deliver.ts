/**
 * Deliver: adds the delivery of a hint to its host's lane. When the lane has a slot, the deliverer claims
 * the delivery (attempt charged, lease taken), sends the signed request and settles the outcome. The
 * database decides whether a hint is still true. Each claim reads the webhook's url and secret, so a
 * change of them applies from the next attempt on.
 */
import { Batch } from '../../adapters/database/batch.ts';
import type { Transaction } from '../../adapters/database/database.ts';
import type { SigningSecrets } from '../../adapters/database/signing-secrets.ts';
import { claimOfEach } from '../../core/leases/claims.ts';
import { settlePatiently } from '../../core/leases/settle-patiently.ts';
import { DecryptionError } from '../../kernel/encryption.ts';
import type { Logger } from '../../kernel/log.ts';
import {
  type ClaimedDelivery,
  changeDeliveryCounts,
  claimDeliveries,
  type DeliveryClaim,
  findWaiting,
} from './deliveries.store.ts';
import { createLanes, type Lanes, quickMs, type WasQuick } from './lanes.ts';
import { messageHeaders } from './message.ts';
import type { DeliveriesDeps } from './new-deliveries.ts';
import { type AttemptResult, resultOf, type Send } from './send.ts';
import type { Settle, Settlement } from './settle.ts';
import type { UnconfirmedClaims } from './unconfirmed-claims.ts';
import { findTargets, type Target } from './webhooks.store.ts';

/** Hints that one query looks up. */
const lookUpMax = 500;
const unreadableSecret =
  'The signing secret cannot be decrypted: the platform has another ENCRYPTION_KEY than the one it was stored under; put that back, or set a new secret';

export interface DeliverDeps {
  readonly base: DeliveriesDeps & { readonly log: Logger };
  readonly send: Send;
  readonly secrets: Pick<SigningSecrets, 'open'>;
  readonly claims: {
    readonly settle: Settle;
    /** Takes those whose commit was not confirmed. */
    readonly unconfirmed: Pick<UnconfirmedClaims, 'add'>;
  };
  readonly times: {
    /** After this time without a settlement, the sweep ends the attempt as lost. */
    readonly leaseMs: number;
    /** The assumed clock skew between processes: a row that is due within this time counts as due. */
    readonly clockSkewMs?: number | undefined;
  };
}

interface Claim {
  /** The delivery's id. */
  readonly id: string;
  readonly delivery: ClaimedDelivery;
  readonly target: Target;
}

interface DelivererState extends DeliverDeps {
  readonly claimed: Batch<string, Claim | null>;
  readonly lanes: Lanes;
  readonly stopping: AbortController;
}

export function createDeliverer(deps: DeliverDeps) {
  const state: DelivererState = {
    ...deps,
    claimed: new Batch(deps.base.database, (tx, ids) => claim(deps, tx, ids)),
    lanes: createLanes((id) => deliver(state, id)),
    stopping: new AbortController(),
  };
  return {
    /** Looks up the delivery of a hint; resolves when its lane has added or refused it. */
    handleHint: coalesce(lookUpMax, (ids: readonly string[]) => lookUp(state, ids)),
    /** Hosts for which enough deliveries wait in this process. */
    fullHosts: state.lanes.full,
    /** Starts no more; resolves when the attempts under way have ended. */
    stop: state.lanes.stop,
    /** Aborts the attempts under way: they count as lost and are repeated at once. */
    abort: () => state.stopping.abort(),
  };
}

/** Adds the deliveries that are due to the lanes of their hosts. */
async function lookUp(
  { base: { database, clock }, lanes, times: { clockSkewMs = 0 } }: DelivererState,
  ids: readonly string[],
): Promise<void> {
  const found = await findWaiting(database.read, { ids, now: clock.now() + clockSkewMs });
  for (const { id, host } of found) lanes.add(host, id);
}

/** Claims the deliveries that are due; null for the others, in the order of `ids`. */
async function claim(
  { base: { clock, writer }, claims, times: { leaseMs, clockSkewMs = 0 } }: DeliverDeps,
  tx: Transaction,
  ids: readonly string[],
): Promise<(Claim | null)[]> {
  const now = clock.now();
  const times = { now, due_by: now + clockSkewMs, lease_until: now + leaseMs };
  const claimed = await claimDeliveries(tx, { ids, ...times });
  tx.ifUncertain(() => claims.unconfirmed.add(claimed.map(claimIdentity)));
  const webhookIds = new Set(claimed.map(({ webhook_id }) => webhook_id));
  const found = await findTargets(tx, { ids: [...webhookIds] });
  await changeDeliveryCounts(
    tx,
    writer,
    claimed.map(({ webhook_id }) => ({ kind: { webhook_id }, from: 'pending', to: 'delivering' })),
  );
  const targets = new Map(found.map((target) => [target.id, target]));
  const targeted = claimed.flatMap((delivery) => {
    const target = targets.get(delivery.webhook_id);
    return target === undefined ? [] : [{ id: delivery.id, delivery, target }];
  });
  return claimOfEach(ids, targeted);
}

/** Without the body, which would be kept for as long as the claim is searched for. */
function claimIdentity({ id, webhook_id, epoch, started_at }: ClaimedDelivery): DeliveryClaim {
  return { id, webhook_id, epoch, started_at };
}

/** Makes one attempt; whether the receiver answered quickly, null when none was made. Never rejects. */
async function deliver(state: DelivererState, deliveryId: string): Promise<WasQuick> {
  try {
    const claim = await state.claimed.add(deliveryId);
    return claim === null ? null : await attempt(state, claim);
  } catch (err) {
    const { log } = state.base;
    log.error({ err, delivery_id: deliveryId }, 'a delivery went wrong; it will be tried again');
    return null;
  }
}

/** Sends one attempt and settles it; whether the receiver answered quickly. */
async function attempt(state: DelivererState, claim: Claim): Promise<boolean> {
  const { clock } = state.base;
  const { delivery } = claim;
  const begun = clock.monotonic();
  const result = await request(state, claim);
  const tookMs = Math.round(clock.monotonic() - begun);
  const startedAt = delivery.started_at ?? clock.now();
  await finish(state, { delivery, result, startedAt, tookMs });
  return result.status !== null && tookMs <= quickMs;
}

/** Signs the request and sends it. */
async function request(
  { base: { clock }, secrets, send, stopping }: DelivererState,
  { delivery, target }: Claim,
): Promise<AttemptResult> {
  const { body, attempts, is_test, redelivery_of } = delivery;
  let secret: string;
  try {
    secret = secrets.open('webhooks', target, target);
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error;
    // Retried like any refused attempt, because the operator may restore the right key.
    const unanswered = { status: null, error: unreadableSecret, response: null };
    return resultOf(unanswered, stopping.signal.aborted);
  }
  return send({
    url: target.url,
    headers: messageHeaders(delivery, secret, clock.now()),
    body,
    isFresh: attempts > 1 || is_test === 1 || redelivery_of !== null,
    signal: stopping.signal,
  });
}

/** Settles the attempt and logs what is unusual about it. */
async function finish(
  { base: { log }, claims, stopping }: DelivererState,
  settlement: Settlement,
): Promise<void> {
  const { delivery, result } = settlement;
  const { id: delivery_id, webhook_id, attempts } = delivery;
  const status = await settlePatiently(
    () => claims.settle(settlement),
    () => {
      if (stopping.signal.aborted) return false;
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
