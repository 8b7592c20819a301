/**
 * Dispatch: makes deliveries of events. One transaction reads the outbox after the cursor, records a
 * delivery for every webhook that is to hear of an event, and moves the cursor; so an event becomes
 * its deliveries exactly once, whatever ends a process and however many there are.
 */
import type { Writer } from '../database/counts.ts';
import type { Database, Transaction } from '../database/database.ts';
import {
  hasNews,
  isAfter,
  joinReader,
  type OutboxEvent,
  oldestUnread,
  type ReaderCursor,
  readEvents,
  readerCursor,
} from '../events/reader.ts';
import type { Clock } from '../kernel/clock.ts';
import { newId } from '../kernel/ids.ts';
import type { Queue } from '../queue/queue.ts';
import { changeDeliveryCounts, type DeliveryRow, insertDeliveries } from './deliveries.store.ts';
import { messageBody } from './message.ts';
import { areAnyActive, holdActiveWebhooks, type WebhookRow } from './webhooks.store.ts';

/** The name under which webhooks follow the outbox. */
const reader = 'webhooks';
const eventsMax = 500;
/** Deliveries made in one transaction, and more only where one event makes more. */
const deliveriesMax = 5_000;
/** Transactions in one pass. */
const roundsMax = 20;
/** Passes that believe that there is no active webhook, before they look again. */
const believedPasses = 10;

export interface Dispatcher {
  /** One pass over the outbox; free of cost while there are no active webhooks. */
  dispatch(): Promise<void>;
  /** To be called once a webhook became active. */
  wake(): void;
  /** How far the outbox has been read; null while nobody listens, and all of it may be deleted. */
  readTo(): Promise<ReaderCursor | null>;
  /** How long the oldest event that is to become deliveries has waited for that, in milliseconds. */
  lagMs(): Promise<number>;
}

export function createDispatcher(parts: {
  database: Database;
  queue: Queue;
  clock: Clock;
  writer: Writer;
}): Dispatcher {
  const { database, queue, clock, writer } = parts;
  let passesToSkip = 0;

  async function record(tx: Transaction, events: readonly OutboxEvent[]): Promise<number> {
    const organizations = new Set(events.map((event) => event.organization_id));
    const webhooks = await holdActiveWebhooks(tx, [...organizations]);
    const { rows, read } = deliveriesOf(events, webhooks, clock.now());
    const inserted = await insertDeliveries(tx, rows);
    const made = rows.filter(({ id }) => inserted.has(id));
    await changeDeliveryCounts(
      tx,
      writer,
      made.map(({ webhook_id }) => ({ kind: { webhook_id }, from: null, to: 'pending' })),
    );
    tx.afterCommit(() => {
      queue.announce(
        'webhooks',
        made.map(({ id }) => ({ id, generation: 0, delayMs: 0 })),
      );
    });
    return read;
  }

  return {
    async dispatch() {
      if (passesToSkip > 0) {
        passesToSkip--;
        return;
      }
      if (!(await areAnyActive(database.read))) {
        passesToSkip = believedPasses;
        return;
      }
      for (let round = 0; round < roundsMax; round++) {
        // A look costs less than a transaction, and mostly there is nothing.
        if (!(await hasNews(database.read, reader))) return;
        const hasRead = await database.write((tx) =>
          readEvents(tx, reader, eventsMax, (events) => record(tx, events)),
        );
        if (!hasRead) return;
      }
    },

    wake() {
      passesToSkip = 0;
    },

    async readTo() {
      if (!(await areAnyActive(database.read))) return null;
      return (await readerCursor(database.read, reader)) ?? null;
    },

    async lagMs() {
      // Where nobody listens, nothing waits.
      if (!(await areAnyActive(database.read))) return 0;
      const recordedAt = await oldestUnread(database.read, reader);
      return recordedAt === undefined ? 0 : Math.max(0, clock.now() - recordedAt);
    },
  };
}

/**
 * The place in the outbox from which on a webhook that becomes active gets events. To be asked for
 * before the webhook is locked, as dispatching takes the two in this order.
 */
export function placeOfNow(tx: Transaction): Promise<string> {
  return joinReader(tx, reader, async () => !(await areAnyActive(tx)));
}

/** Deliveries of the first events, as many as are made at a time, and how many events those are. */
function deliveriesOf(
  events: readonly OutboxEvent[],
  webhooks: readonly WebhookRow[],
  now: number,
): { rows: DeliveryRow[]; read: number } {
  const byAgent = Map.groupBy(webhooks.map(listener), ({ agent }) => agent);
  const rows: DeliveryRow[] = [];
  let read = 0;
  for (const event of events) {
    const listeners = byAgent.get(`${event.organization_id}/${event.agent_id}`) ?? [];
    const hearing = listeners.filter(
      ({ types, since }) => types.has(event.type) && isAfter(event, since),
    );
    if (hearing.length > 0 && rows.length + hearing.length > deliveriesMax && read > 0) break;
    const { id, type, agent_id: agentId, data, created_at: createdAt } = event;
    const body = hearing.length === 0 ? '' : messageBody({ id, type, agentId, data, createdAt });
    const subject = hearing.length === 0 ? null : subjectOf(data);
    for (const { webhookId } of hearing) {
      const event_id = id;
      rows.push(newDelivery({ webhook_id: webhookId, event_id, event: type, body, subject }, now));
    }
    read++;
  }
  return { rows, read };
}

/** What an event tells of: a job, or a conversation alone. */
function subjectOf(data: string): string | null {
  const { job_id, conversation_id } = JSON.parse(data) as Record<string, string | null | undefined>;
  return job_id ?? conversation_id ?? null;
}

function listener({ id, organization_id, agent_id, events, active_since }: WebhookRow) {
  return {
    agent: `${organization_id}/${agent_id}`,
    webhookId: id,
    types: new Set(JSON.parse(events) as string[]),
    since: active_since,
  };
}

/** A delivery that is due now. */
export function newDelivery(
  fields: Pick<DeliveryRow, 'webhook_id' | 'event_id' | 'event' | 'body'> &
    Partial<Pick<DeliveryRow, 'is_test' | 'redelivery_of' | 'subject'>>,
  now: number,
): DeliveryRow {
  return {
    id: newId(),
    status: 'pending',
    attempts: 0,
    lost: 0,
    epoch: 0,
    due_at: now,
    started_at: null,
    is_test: 0,
    redelivery_of: null,
    created_at: now,
    finished_at: null,
    subject: null,
    ...fields,
  };
}
