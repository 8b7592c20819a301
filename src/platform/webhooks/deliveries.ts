/** The delivery log of a webhook, and sending on demand: redeliveries and tests. */

import type { Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { defaultAgentId } from '../../core/agents/agents.ts';
import { type EventType, events } from '../../core/events/events.ts';
import { bind } from '../../kernel/bind.ts';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import { allAgents, isId, newId } from '../../kernel/ids.ts';
import type { AttemptRow, DeliveryRow } from './deliveries.store.ts';
import {
  findDelivery,
  type LoggedDelivery,
  listAttempts,
  listDeliveries,
  listDeliveriesAbout,
  lockDelivery,
} from './delivery-log.store.ts';
import { messageBody } from './message.ts';
import { addDeliveries, type DeliveriesDeps, newDelivery } from './new-deliveries.ts';
import { findWebhook, lockWebhook, type WebhookRow } from './webhooks.store.ts';

export type Deliveries = ReturnType<typeof createDeliveries>;

export function createDeliveries(deps: DeliveriesDeps) {
  return bind(deps, { find, get, list, ofJob, redeliver, test });
}

async function find(
  { database }: DeliveriesDeps,
  webhookId: string,
  id: string,
): Promise<DeliveryRow> {
  const row = isId(id) ? await findDelivery(database.read, webhookId, id) : undefined;
  if (row === undefined) throw notFound('Delivery');
  return row;
}

/** A delivery with its attempts and its body. */
async function get(deps: DeliveriesDeps, webhookId: string, id: string) {
  const row = await find(deps, webhookId, id);
  const [found] = await withAttempts(deps, [row]);
  if (found === undefined) throw notFound('Delivery');
  return { ...found.delivery, body: row.body };
}

/** Deliveries of a webhook without the hidden types, which it may have had in `events` before. */
async function list(
  deps: DeliveriesDeps,
  organizationId: string,
  webhookId: string,
  hidden: readonly EventType[],
  page: PageAsked,
) {
  const { read } = deps.database;
  if ((await findWebhook(read, organizationId, webhookId)) === undefined) throw notFound('Webhook');
  const { data, total } = await listDeliveries(read, webhookId, hidden, page);
  const found = await withAttempts(deps, data);
  return { data: found.map(({ delivery }) => delivery), total };
}

/** Deliveries of the events of a job, and of those of its conversation that name no job, without the hidden types. */
async function ofJob(
  deps: DeliveriesDeps,
  organizationId: string,
  job: { readonly id: string; readonly conversation_id: string },
  hidden: readonly EventType[],
  page: PageAsked,
) {
  const subjects = [job.id, job.conversation_id];
  const { read } = deps.database;
  const { data, total } = await listDeliveriesAbout(
    read,
    organizationId,
    { subjects, hidden },
    page,
  );
  const found = await withAttempts(deps, data);
  const shown = found.map(({ row: { webhook_id, url }, delivery }) => ({
    ...delivery,
    webhook_id,
    url,
  }));
  return { data: shown, total };
}

/** Adds the attempts to deliveries. */
async function withAttempts<Row extends LoggedDelivery>(
  { database }: DeliveriesDeps,
  rows: readonly Row[],
) {
  const ids = rows.map(({ id }) => id);
  const attempts = await listAttempts(database.read, ids);
  const byDelivery = Map.groupBy(attempts, ({ delivery_id }) => delivery_id);
  return rows.map((row) => ({ row, delivery: deliveryBody(row, byDelivery.get(row.id) ?? []) }));
}

/** Sends an event again as a new delivery with the same bytes. */
function redeliver(
  deps: DeliveriesDeps,
  organizationId: string,
  webhookId: string,
  deliveryId: string,
) {
  return sendNow(deps, organizationId, webhookId, async (tx) => {
    // Locked, because an erasure that reads it meanwhile would not find the copy.
    const original = await lockDelivery(tx, webhookId, deliveryId);
    if (original === undefined) throw notFound('Delivery');
    const { event_id, event, body, is_test, subject } = original;
    const same = { webhook_id: webhookId, event_id, event, body, is_test, subject };
    return newDelivery({ ...same, redelivery_of: deliveryId }, deps.clock.now());
  });
}

/** Sends a sample of the first event type in the webhook's `events`. */
function test(deps: DeliveriesDeps, organizationId: string, webhookId: string) {
  return sendNow(deps, organizationId, webhookId, async (_tx, webhook) => {
    const now = deps.clock.now();
    const [type] = JSON.parse(webhook.events) as [EventType];
    const id = newId();
    const body = messageBody({
      id,
      type,
      createdAt: now,
      agentId: webhook.agent_id === allAgents ? defaultAgentId : webhook.agent_id,
      data: JSON.stringify({ ...events[type].sample, test: true }),
    });
    const delivery = { webhook_id: webhookId, event_id: id, event: type, body, is_test: 1 };
    return newDelivery(delivery, now);
  });
}

/** Sends the delivery that `make` returns, if the webhook is active. */
function sendNow(
  { database, queue, writer }: DeliveriesDeps,
  organizationId: string,
  webhookId: string,
  make: (tx: Transaction, webhook: WebhookRow) => Promise<DeliveryRow>,
) {
  return database.write(async (tx) => {
    const webhook = await lockWebhook(tx, organizationId, webhookId);
    if (webhook === undefined) throw notFound('Webhook');
    const delivery = await make(tx, webhook);
    if (webhook.active === 0) {
      throw new PlatformError('conflict', 'The webhook is not active: activate it first');
    }
    await addDeliveries({ queue, writer }, tx, [delivery]);
    return deliveryBody(delivery, []);
  });
}

/** A delivery as the API shows it. */
function deliveryBody(row: LoggedDelivery, recorded: readonly AttemptRow[]) {
  // Attempts are read after the delivery. One that ended in between is left out, to agree with its status.
  const ended = row.status === 'delivering' ? row.attempts - 1 : row.attempts;
  const attempts = recorded.filter(({ attempt }) => attempt <= ended);
  return {
    id: row.id,
    event_id: row.event_id,
    event: row.event as EventType,
    status: row.status,
    attempts: attempts.map(({ attempt, started_at, duration_ms, status, error, response }) => ({
      attempt,
      started_at: timestamp(started_at),
      duration_ms,
      status,
      error,
      response,
    })),
    next_attempt_at: row.status === 'pending' ? timestampOrNull(row.due_at) : null,
    created_at: timestamp(row.created_at),
    finished_at: timestampOrNull(row.finished_at),
    test: row.is_test === 1,
    redelivery_of: row.redelivery_of,
  };
}
