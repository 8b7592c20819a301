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
  /** When the next attempt is due; null when there is none. */
  readonly dueAt: number | null;
  readonly standing: Standing;
}

/**
 * Decides about a delivery after `attempts` attempts, the one that has just ended included. A refused
 * one is tried again after the delay that its number gives, a lost one at once, while delays are
 * left. A failed one counts against its webhook, unless it was only a test.
 */
export function verdictOn(
  ending: Ending,
  delivery: { readonly attempts: number; readonly isTest: boolean },
  standing: Standing,
  delaysMs: readonly number[],
  now: number,
): Verdict {
  if (ending === 'taken') {
    const recovered = { ...standing, isFailing: false, consecutiveFailures: 0 };
    return { status: 'delivered', dueAt: null, standing: recovered };
  }
  const delay = delaysMs[delivery.attempts - 1];
  if (ending !== 'gone' && delay !== undefined) {
    if (!standing.isActive) return { status: 'cancelled', dueAt: null, standing };
    return { status: 'pending', dueAt: ending === 'lost' ? now : now + delay, standing };
  }
  if (delivery.isTest) return { status: 'failed', dueAt: null, standing };
  const consecutiveFailures = standing.consecutiveFailures + 1;
  return {
    status: 'failed',
    dueAt: null,
    standing: {
      isActive: standing.isActive && consecutiveFailures < failuresMax,
      isFailing: true,
      consecutiveFailures,
    },
  };
}
