/**
 * Settle: the one way out for an attempt. One transaction records the attempt, what becomes of its
 * delivery, and where the webhook then stands: with its tenth failed delivery in a row it is switched
 * off, and all that was still to be sent to it is cancelled, while attempts under way come to their
 * own end. Accepted only from the attempt that still holds the lease; a late loser changes nothing and
 * is told so.
 */
import { createBatch } from '../database/batch.ts';
import type { CountChange, Writer } from '../database/counts.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { DeliveryStatus } from '../database/tables.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Queue } from '../queue/queue.ts';
import {
  type AttemptRow,
  type ClaimedDelivery,
  changeDeliveryCounts,
  insertAttempts,
  lockDelivering,
  settleDeliveries,
} from './deliveries.store.ts';
import { cancelSome } from './ending.ts';
import { type Ending, isFinal, type Standing, type Verdict, verdictOn } from './states.ts';
import { lockStandings, type StandingRow, setStandings } from './webhooks.store.ts';

/** A timer may fire a moment before its time. */
const timerSlackMs = 2;
/** Retries further ahead are left to the sweep. */
const hintAheadMs = 60 * 60 * 1000;

/** The end of an attempt. */
export interface Settlement {
  readonly delivery: ClaimedDelivery;
  readonly ending: Ending;
  readonly attempt: Omit<AttemptRow, 'delivery_id' | 'attempt'>;
}

/** What the delivery is now, or null: it is no longer this attempt's. */
export type Settle = (settlement: Settlement) => Promise<DeliveryStatus | null>;

/** What one attempt brought, for the metrics. */
export interface Observation {
  readonly status: DeliveryStatus;
  readonly isTaken: boolean;
  readonly tookMs: number;
}

interface Judged extends Settlement {
  readonly verdict: Verdict;
}

export function createSettle(parts: {
  database: Database;
  queue: Queue;
  clock: Clock;
  writer: Writer;
  /** Waits before each retry; one retry for each. */
  delaysMs: readonly number[];
  /** Told of each attempt that was settled, after the commit. */
  observe(observation: Observation): void;
}): Settle {
  const { database, queue, clock, writer, delaysMs, observe } = parts;

  return createBatch<Settlement, DeliveryStatus | null>(database, async (tx, settlements) => {
    const now = clock.now();
    const bench = await createBench(tx, settlements);
    const judged = settlements.map((one) => bench.judge(one, delaysMs, now));
    const settled = judged.filter((one) => one !== null);
    await record(tx, settled, now);
    await setStandings(tx, bench.standings(settled), now);
    const changes = settled.map(changeOf);
    for (const id of bench.switchedOff) {
      changes.push(...(await cancelSome(tx, id, now)));
    }
    await changeDeliveryCounts(tx, writer, changes);
    tx.afterCommit(() => {
      for (const one of settled) publish(one, now);
    });
    return judged.map((one) => one?.verdict.status ?? null);
  });

  function publish({ delivery, ending, attempt, verdict }: Judged, now: number): void {
    const { status, dueAt } = verdict;
    observe({ status, isTaken: ending === 'taken', tookMs: attempt.duration_ms });
    if (dueAt === null || dueAt - now > hintAheadMs) return;
    const delayMs = dueAt > now ? dueAt - now + timerSlackMs : 0;
    queue.sendHints('webhooks', [{ id: delivery.id, generation: delivery.epoch, delayMs }]);
  }
}

/**
 * Judges settlements one after the other, each by where the ones before it have left the webhook.
 * Null for one that holds nothing any more.
 */
async function createBench(tx: Transaction, settlements: readonly Settlement[]) {
  const webhookIds = new Set(settlements.map(({ delivery }) => delivery.webhook_id));
  const rows = await lockStandings(tx, [...webhookIds]);
  const standings = new Map(rows.map((row) => [row.id, standingOf(row)]));
  const epochs = await lockDelivering(
    tx,
    settlements.map(({ delivery }) => delivery.id),
  );
  /** Webhooks that have had their last failure here. */
  const switchedOff = new Set<string>();

  return {
    switchedOff,

    judge(one: Settlement, delaysMs: readonly number[], now: number): Judged | null {
      const { id, webhook_id, epoch, attempts, lost, is_test } = one.delivery;
      const standing = standings.get(webhook_id);
      if (standing === undefined || epochs.get(id) !== epoch) return null;
      epochs.delete(id);
      const delivery = { attempts, lost, isTest: is_test === 1 };
      const verdict = verdictOn(one.ending, delivery, standing, delaysMs, now);
      standings.set(webhook_id, verdict.standing);
      if (standing.isActive && !verdict.standing.isActive) switchedOff.add(webhook_id);
      return { ...one, verdict };
    },

    /** Where the webhooks of what was judged stand in the end. */
    standings(judged: readonly Judged[]): StandingRow[] {
      const ids = new Set(judged.map(({ delivery }) => delivery.webhook_id));
      return [...ids].sort().map((id) => rowOf(id, standings.get(id) as Standing));
    },
  };
}

async function record(tx: Transaction, judged: readonly Judged[], now: number): Promise<void> {
  await settleDeliveries(
    tx,
    judged.map(({ delivery, verdict: { status, lost, dueAt } }) => ({
      id: delivery.id,
      status,
      lost,
      due_at: dueAt,
      finished_at: isFinal(status) ? now : null,
    })),
  );
  await insertAttempts(
    tx,
    judged.map(({ delivery, attempt }) => ({
      delivery_id: delivery.id,
      attempt: delivery.attempts,
      ...attempt,
    })),
  );
}

type Change = CountChange<'webhook_delivery_counts'>;

function changeOf({ delivery, verdict }: Judged): Change {
  const kind = { webhook_id: delivery.webhook_id };
  return { kind, from: 'delivering', to: verdict.status };
}

function standingOf(row: StandingRow): Standing {
  return {
    isActive: row.active === 1,
    isFailing: row.failing === 1,
    consecutiveFailures: row.consecutive_failures,
  };
}

function rowOf(id: string, standing: Standing): StandingRow {
  return {
    id,
    active: standing.isActive ? 1 : 0,
    failing: standing.isFailing ? 1 : 0,
    consecutive_failures: standing.consecutiveFailures,
  };
}
