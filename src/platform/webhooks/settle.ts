/**
 * Settle: every attempt ends here. One transaction records the attempt, the next state of its delivery
 * and the health of the webhook. The tenth failed delivery in a row switches the webhook off and cancels
 * its pending deliveries; attempts under way run to their end. A settlement counts only from the attempt
 * that still holds the lease. One that has lost it changes nothing and gets null.
 */
import { Batch } from '../../adapters/database/batch.ts';
import type { CountChange } from '../../adapters/database/counts.ts';
import type { Transaction } from '../../adapters/database/database.ts';
import type { DeliveryStatus } from '../../adapters/database/tables.ts';
import type { Context } from '../../core/context/context.ts';
import { cancelPendingBatch } from './cleanup.ts';
import {
  type ClaimedDelivery,
  deliveryCounts,
  endAttempts,
  lockDelivering,
} from './deliveries.store.ts';
import type { AttemptResult } from './send.ts';
import { isFinal, nextState, type Transition, type WebhookHealth } from './states.ts';
import { type HealthRow, lockHealth, setHealth } from './webhooks.store.ts';

/** Node's timers may fire up to a millisecond early. */
const timerSlackMs = 2;
/** The sweep sends the hints of retries that are further ahead. */
const hintAheadMs = 60 * 60 * 1000;

/** The end of an attempt. */
export interface Settlement {
  readonly delivery: ClaimedDelivery;
  readonly result: AttemptResult;
  readonly startedAt: number;
  readonly tookMs: number;
}

/** One settled attempt, for the metrics. */
export interface Observation {
  readonly status: DeliveryStatus;
  readonly isAccepted: boolean;
  readonly tookMs: number;
}

interface Decided extends Settlement {
  readonly transition: Transition;
}

/** Called after the commit with each settled attempt. */
export type DeliveryObserver = (observation: Observation) => void;

export class DeliverySettler {
  readonly #context: Context;
  readonly #observe: DeliveryObserver;
  readonly #batch: Batch<Settlement, DeliveryStatus | null>;

  constructor(context: Context, observe: DeliveryObserver) {
    this.#context = context;
    this.#observe = observe;
    this.#batch = new Batch(context.database, (tx, settlements) =>
      this.#settleBatch(tx, settlements),
    );
  }

  /** The new status of the delivery; null when this attempt no longer holds it. */
  settle(settlement: Settlement): Promise<DeliveryStatus | null> {
    return this.#batch.add(settlement);
  }

  async #settleBatch(
    tx: Transaction,
    settlements: readonly Settlement[],
  ): Promise<(DeliveryStatus | null)[]> {
    const { clock, writer, config } = this.#context;
    const now = clock.now();
    const batch = await lockBatch(tx, settlements);
    const decided = settlements.map((one) => decide(batch, one, config.webhookRetryDelays, now));
    const settled = decided.filter((one) => one !== null);
    await record(tx, settled, now);
    await setHealth(tx, healthRows(batch, settled), now);
    const changes = settled.map(changeOf);
    for (const id of batch.switchedOff) {
      changes.push(...(await cancelPendingBatch(tx, id, now)));
    }
    await deliveryCounts.change(tx, writer, changes);
    tx.afterCommit(() => {
      for (const one of settled) this.#publish(one, now);
    });
    return decided.map((one) => one?.transition.status ?? null);
  }

  /** Observes a settled attempt, and sends the hint of the next one. */
  #publish({ delivery, result, tookMs, transition }: Decided, now: number): void {
    const { status, dueAt } = transition;
    this.#observe({ status, isAccepted: result.outcome === 'accepted', tookMs });
    if (dueAt === null || dueAt - now > hintAheadMs) return;
    const delayMs = dueAt > now ? dueAt - now + timerSlackMs : 0;
    const hint = { id: delivery.id, generation: delivery.epoch, delayMs };
    this.#context.queue.sendHints('webhooks', [hint]);
  }
}

/** What the settlements of one transaction share, locked; each decision changes it for the next one. */
interface SettlementBatch {
  readonly health: Map<string, WebhookHealth>;
  /** The deliveries that are under way. */
  readonly held: Map<string, { readonly epoch: number; readonly is_erased: 0 | 1 }>;
  /** Webhooks that failed deliveries of this batch switch off. */
  readonly switchedOff: Set<string>;
}

async function lockBatch(
  tx: Transaction,
  settlements: readonly Settlement[],
): Promise<SettlementBatch> {
  const webhookIds = new Set(settlements.map(({ delivery }) => delivery.webhook_id));
  const rows = await lockHealth(tx, { ids: [...webhookIds] });
  const ids = settlements.map(({ delivery }) => delivery.id);
  const held = await lockDelivering(tx, { ids });
  const health = new Map(rows.map((row) => [row.id, healthOf(row)]));
  return { health, held: new Map(held.map((row) => [row.id, row])), switchedOff: new Set() };
}

/** Decides one settlement; null when its attempt no longer holds the lease. */
function decide(
  { health, held, switchedOff }: SettlementBatch,
  one: Settlement,
  delaysMs: readonly number[],
  now: number,
): Decided | null {
  const { id, webhook_id, epoch, attempts, lost, is_test } = one.delivery;
  const before = health.get(webhook_id);
  const row = held.get(id);
  if (before === undefined || row?.epoch !== epoch) return null;
  held.delete(id);
  const delivery = { attempts, lost, isTest: is_test === 1 };
  const transition = nextState(one.result.outcome, delivery, before, delaysMs, now);
  health.set(webhook_id, transition.health);
  if (before.isActive && !transition.health.isActive) switchedOff.add(webhook_id);
  // The receiver may have repeated what was erased during the attempt.
  const result = row.is_erased === 1 ? { ...one.result, response: null } : one.result;
  return { ...one, result, transition };
}

/** The health of the webhooks after all decisions, in the order of their ids. */
function healthRows({ health }: SettlementBatch, decided: readonly Decided[]): HealthRow[] {
  const ids = new Set(decided.map(({ delivery }) => delivery.webhook_id));
  return [...ids].sort().map((id) => rowOf(id, health.get(id) as WebhookHealth));
}

async function record(tx: Transaction, settled: readonly Decided[], now: number): Promise<void> {
  await endAttempts(
    tx,
    settled.map(({ delivery, transition: { status, lost, dueAt } }) => ({
      id: delivery.id,
      status,
      lost,
      due_at: dueAt,
      finished_at: isFinal(status) ? now : null,
    })),
    settled.map(({ delivery, result, startedAt, tookMs }) => ({
      delivery_id: delivery.id,
      attempt: delivery.attempts,
      started_at: startedAt,
      duration_ms: tookMs,
      status: result.status,
      error: result.error,
      response: result.response,
    })),
  );
}

type Change = CountChange<'webhook_delivery_counts'>;

function changeOf({ delivery, transition }: Decided): Change {
  const kind = { webhook_id: delivery.webhook_id };
  return { kind, from: 'delivering', to: transition.status };
}

function healthOf(row: HealthRow): WebhookHealth {
  return {
    isActive: row.active === 1,
    isFailing: row.failing === 1,
    consecutiveFailures: row.consecutive_failures,
  };
}

function rowOf(id: string, health: WebhookHealth): HealthRow {
  return {
    id,
    active: health.isActive ? 1 : 0,
    failing: health.isFailing ? 1 : 0,
    consecutive_failures: health.consecutiveFailures,
  };
}
