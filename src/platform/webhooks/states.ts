/**
 * The states of a webhook and of a delivery: which state may follow which, and how the outcome of an
 * attempt changes the delivery and the health of its webhook. Pure functions; time is passed in.
 */
import type { DeliveryStatus } from '../../adapters/database/tables.ts';

/** The state that the fields `active` and `failing` of the API give together. */
export type WebhookState = 'active' | 'failing' | 'inactive';

/**
 * Which states may follow each state. A webhook ends only by being deleted, from any of them.
 * @public A test compares the diagram in docs/webhooks.md with it.
 */
export const webhookTransitions: Record<WebhookState, readonly WebhookState[]> = {
  active: ['failing', 'inactive'],
  failing: ['active', 'inactive'],
  // A webhook that is switched on again stays failing until a delivery succeeds.
  inactive: ['active', 'failing'],
};

/** Which states may follow each state. A final one has none. */
export const deliveryTransitions: Record<DeliveryStatus, readonly DeliveryStatus[]> = {
  pending: ['delivering', 'cancelled'],
  delivering: ['pending', 'delivered', 'failed', 'cancelled'],
  delivered: [],
  failed: [],
  cancelled: [],
};

export function isFinal(status: DeliveryStatus): boolean {
  return deliveryTransitions[status].length === 0;
}

/** Consecutive failed deliveries after which a webhook is switched off (specification: Limits). */
const failuresMax = 10;

/**
 * Lost attempts of one delivery that use up no retry. Further ones count as refused, because the
 * receiver's answer itself may be what crashes the process.
 */
const forgivenMax = 20;

/**
 * How an attempt ended. `accepted`: the receiver answered 2xx. `gone`: it answered 410. `refused`: it
 * gave any other answer, or none. `lost`: the outcome is unknown, because the sending process died.
 */
export type AttemptOutcome = 'accepted' | 'refused' | 'gone' | 'lost';

/** The state of a webhook that depends on its deliveries. */
export interface WebhookHealth {
  readonly isActive: boolean;
  readonly isFailing: boolean;
  readonly consecutiveFailures: number;
}

/** The next state of a delivery, and the health of its webhook after it. */
export interface Transition {
  readonly status: DeliveryStatus;
  /** How many of its attempts were lost and forgiven. */
  readonly lost: number;
  /** When the next attempt is due; null when there is none. */
  readonly dueAt: number | null;
  readonly health: WebhookHealth;
}

/**
 * The transition of a delivery after `attempts` attempts, including the one that has just ended; `lost`
 * of the earlier ones were lost and forgiven. The n-th refused attempt is followed by another after the
 * n-th delay; when no delay is left, the delivery fails. A lost attempt is repeated at once and uses up
 * no delay. A failed delivery counts against its webhook, unless it was a test or the webhook has been
 * switched off meanwhile.
 */
export function nextState(
  outcome: AttemptOutcome,
  delivery: { readonly attempts: number; readonly lost: number; readonly isTest: boolean },
  health: WebhookHealth,
  delaysMs: readonly number[],
  now: number,
): Transition {
  const isForgiven = outcome === 'lost' && delivery.lost < forgivenMax;
  const lost = delivery.lost + (isForgiven ? 1 : 0);
  if (outcome === 'accepted') {
    const recovered = { ...health, isFailing: false, consecutiveFailures: 0 };
    return { status: 'delivered', lost, dueAt: null, health: recovered };
  }
  const delay = isForgiven ? 0 : delaysMs[delivery.attempts - lost - 1];
  if (outcome !== 'gone' && delay !== undefined) {
    if (!health.isActive) return { status: 'cancelled', lost, dueAt: null, health };
    return { status: 'pending', lost, dueAt: now + delay, health };
  }
  const after = delivery.isTest ? health : afterFailure(health);
  return { status: 'failed', lost, dueAt: null, health: after };
}

/** The health of a webhook after one more failed delivery. */
function afterFailure({ isActive, consecutiveFailures }: WebhookHealth): WebhookHealth {
  // An attempt that fails after the webhook was switched off began before it, so it is not counted.
  if (!isActive) return { isActive, isFailing: true, consecutiveFailures };
  const failures = consecutiveFailures + 1;
  return { isActive: failures < failuresMax, isFailing: true, consecutiveFailures: failures };
}
