/** The delivery log of a webhook, and sending on demand: redeliveries and tests. */

import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { defaultAgentId } from '../../core/agents/agents.ts';
import type { Context } from '../../core/context/context.ts';
import { type EventType, events } from '../../core/events/events.ts';
import type { Jobs } from '../../core/jobs/jobs.ts';
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
import { addDeliveries, newDelivery } from './new-deliveries.ts';
import { findWebhook, lockWebhook, type WebhookRow } from './webhooks.store.ts';

export class Deliveries {
  readonly #context: Context;
  readonly jobs: Jobs;

  constructor(context: Context, jobs: Jobs) {
    this.#context = context;
    this.jobs = jobs;
  }

  /** The delivery of a webhook, or `404`. */
  async find(webhookId: string, id: string): Promise<DeliveryRow> {
    const { read } = this.#context.database;
    const row = isId(id) ? await findDelivery(read, webhookId, id) : undefined;
    if (row === undefined) throw notFound('Delivery');
    return row;
  }

  /** A delivery with its attempts and its body. */
  async get(webhookId: string, id: string) {
    const row = await this.find(webhookId, id);
    const [found] = await withAttempts(this.#context.database.read, [row]);
    if (found === undefined) throw notFound('Delivery');
    return { ...found.delivery, body: row.body };
  }

  /** Deliveries of a webhook without the hidden types, which it may have had in `events` before. */
  async list(
    organizationId: string,
    webhookId: string,
    hidden: readonly EventType[],
    page: PageAsked,
  ) {
    const { read } = this.#context.database;
    const webhook = await findWebhook(read, organizationId, webhookId);
    if (webhook === undefined) throw notFound('Webhook');
    const { data, total } = await listDeliveries(read, webhookId, hidden, page);
    const found = await withAttempts(read, data);
    return { data: found.map(({ delivery }) => delivery), total };
  }

  /** Deliveries of the events of a job, and of those of its conversation that name no job, without the hidden types. */
  async listOfJob(
    organizationId: string,
    job: { readonly id: string; readonly conversation_id: string },
    hidden: readonly EventType[],
    page: PageAsked,
  ) {
    const { read } = this.#context.database;
    const about = { subjects: [job.id, job.conversation_id], hidden };
    const { data, total } = await listDeliveriesAbout(read, organizationId, about, page);
    const found = await withAttempts(read, data);
    const shown = found.map(({ row: { webhook_id, url }, delivery }) => ({
      ...delivery,
      webhook_id,
      url,
    }));
    return { data: shown, total };
  }

  /** Sends an event again as a new delivery with the same bytes. */
  redeliver(organizationId: string, webhookId: string, deliveryId: string) {
    return this.#sendNow(organizationId, webhookId, async (tx) => {
      // Locked, because an erasure that reads it meanwhile would not find the copy.
      const original = await lockDelivery(tx, webhookId, deliveryId);
      if (original === undefined) throw notFound('Delivery');
      const { event_id, event, body, is_test, subject } = original;
      const same = { webhook_id: webhookId, event_id, event, body, is_test, subject };
      return newDelivery({ ...same, redelivery_of: deliveryId }, this.#context.clock.now());
    });
  }

  /** Sends a sample of the first event type in the webhook's `events`. */
  sendSample(organizationId: string, webhookId: string) {
    return this.#sendNow(organizationId, webhookId, async (_tx, webhook) =>
      sampleDelivery(webhook, this.#context.clock.now()),
    );
  }

  /** Sends the delivery that `make` returns, if the webhook is active. */
  #sendNow(
    organizationId: string,
    webhookId: string,
    make: (tx: Transaction, webhook: WebhookRow) => Promise<DeliveryRow>,
  ) {
    return this.#context.database.write(async (tx) => {
      const webhook = await lockWebhook(tx, organizationId, webhookId);
      if (webhook === undefined) throw notFound('Webhook');
      const delivery = await make(tx, webhook);
      if (webhook.active === 0) {
        throw new PlatformError('conflict', 'The webhook is not active: activate it first');
      }
      await addDeliveries(this.#context, tx, [delivery]);
      return deliveryBody(delivery, []);
    });
  }
}

function sampleDelivery({ id: webhookId, agent_id, events: types }: WebhookRow, now: number) {
  const [type] = JSON.parse(types) as [EventType];
  const id = newId();
  const body = messageBody({
    id,
    type,
    createdAt: now,
    agentId: agent_id === allAgents ? defaultAgentId : agent_id,
    data: JSON.stringify({ ...events[type].sample, test: true }),
  });
  const delivery = { webhook_id: webhookId, event_id: id, event: type, body, is_test: 1 } as const;
  return newDelivery(delivery, now);
}

/** Adds the attempts to deliveries. */
async function withAttempts<Row extends LoggedDelivery>(db: Handle, rows: readonly Row[]) {
  const ids = rows.map(({ id }) => id);
  const attempts = await listAttempts(db, ids);
  const byDelivery = Map.groupBy(attempts, ({ delivery_id }) => delivery_id);
  return rows.map((row) => ({ row, delivery: deliveryBody(row, byDelivery.get(row.id) ?? []) }));
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
