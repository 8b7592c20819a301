/**
 * The lives of a webhook and of a delivery as data and pure decisions: which state may follow which,
 * and what the end of an attempt makes of the delivery and of its webhook. No I/O; time is passed in.
 */
import type { DeliveryStatus } from '../database/tables.ts';

/** As the API shows it: `active` and `failing` together. */
export type WebhookState = 'active' | 'failing' | 'inactive';

/** Which states may follow each state. A webhook ends only by being deleted, from any of them. */
export const webhookTransitions: Record<WebhookState, readonly WebhookState[]> = {
  active: ['failing', 'inactive'],
  failing: ['active', 'inactive'],
  // Switched on again, it stays failing until something arrives.
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
 * Lost attempts of one delivery that use up no retry. Further ones count as refused: it may be the
 * answer itself that ends the process.
 */
const forgivenMax = 20;

/**
 * How an attempt ended: the receiver took it, it did not, it wants no more of it (410), or nobody
 * knows, because the process that sent it has gone.
 */
export type Ending = 'taken' | 'refused' | 'gone' | 'lost';

/** What of a webhook its deliveries decide by, and change. */
export interface Standing {
  readonly isActive: boolean;
  readonly isFailing: boolean;
  readonly consecutiveFailures: number;
}

/** What becomes of a delivery, and where its webhook then stands. */
export interface Verdict {
  readonly status: DeliveryStatus;
  /** Of its attempts, those that were lost and forgiven. */
  readonly lost: number;
  /** When the next attempt is due; null when there is none. */
  readonly dueAt: number | null;
  readonly standing: Standing;
}

/**
 * Decides about a delivery after `attempts` attempts, the one that has just ended included; `lost` of
 * those before it were lost and forgiven. A refused one is tried again after the delay that its number
 * among the refused ones gives, while delays are left. A lost one is repeated at once and uses up no
 * delay, because the receiver has refused nothing. A failed delivery counts against its webhook, unless
 * it was only a test or the webhook was switched off meanwhile.
 */
export function verdictOn(
  ending: Ending,
  delivery: { readonly attempts: number; readonly lost: number; readonly isTest: boolean },
  standing: Standing,
  delaysMs: readonly number[],
  now: number,
): Verdict {
  const isForgiven = ending === 'lost' && delivery.lost < forgivenMax;
  const lost = delivery.lost + (isForgiven ? 1 : 0);
  if (ending === 'taken') {
    const recovered = { ...standing, isFailing: false, consecutiveFailures: 0 };
    return { status: 'delivered', lost, dueAt: null, standing: recovered };
  }
  const delay = isForgiven ? 0 : delaysMs[delivery.attempts - lost - 1];
  if (ending !== 'gone' && delay !== undefined) {
    if (!standing.isActive) return { status: 'cancelled', lost, dueAt: null, standing };
    return { status: 'pending', lost, dueAt: now + delay, standing };
  }
  const after = delivery.isTest ? standing : afterFailure(standing);
  return { status: 'failed', lost, dueAt: null, standing: after };
}

/** Where a webhook stands after one more failed delivery. */
function afterFailure({ isActive, consecutiveFailures }: Standing): Standing {
  // What fails after it was switched off was begun before, and says nothing new.
  if (!isActive) return { isActive, isFailing: true, consecutiveFailures };
  const failures = consecutiveFailures + 1;
  return { isActive: failures < failuresMax, isFailing: true, consecutiveFailures: failures };
}
