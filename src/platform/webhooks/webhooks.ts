/**
 * Webhooks: the addresses to which the events of an agent, or of all agents of an organization, are delivered. A webhook
 * gets the events that happen after the response that made it active; `awaitEarlierAppenders` delays that response until no event
 * can be missed. Switching a webhook off or deleting it cancels its pending deliveries.
 */
import { randomBytes } from 'node:crypto';
import { type Cap, requireRoom } from '../../adapters/database/caps.ts';
import type { Transaction } from '../../adapters/database/database.ts';
import type { SigningSecrets } from '../../adapters/database/signing-secrets.ts';
import type { AllowList } from '../../adapters/egress/allow-list.ts';
import { checkUrl } from '../../adapters/egress/url-guard.ts';
import type { Agents } from '../../core/agents/agents.ts';
import type { Config } from '../../core/config/config.ts';
import type { Context } from '../../core/context/context.ts';
import { type EventType, organizationEvents, scopesToRead } from '../../core/events/events.ts';
import { awaitEarlierAppenders } from '../../core/events/outbox.ts';
import { type Caller, requireScopes } from '../../kernel/caller.ts';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { invalid, notFound } from '../../kernel/errors.ts';
import { allAgents, isId, newId } from '../../kernel/ids.ts';
import { secretFault } from '../../kernel/webhook-signature.ts';
import { cancelPendingBatch, removeWebhook } from './cleanup.ts';
import { deliveryCounts } from './deliveries.store.ts';
import { currentPlace, type Dispatcher } from './dispatch.ts';
import type { NewWebhook, WebhookChanges } from './webhooks.schemas.ts';
import {
  findWebhook,
  insertWebhook,
  listWebhooks,
  lockWebhook,
  updateWebhook,
  type WebhookRow,
} from './webhooks.store.ts';

/** The organization and the scopes of the key that writes a webhook. */
type Writer = Pick<Caller, 'organizationId' | 'scopes'>;

interface WebhookCollaborators {
  readonly agents: Agents;
  readonly secrets: SigningSecrets;
  readonly dispatcher: Dispatcher;
}

export class Webhooks {
  readonly #context: Context;
  readonly #agents: Agents;
  readonly #secrets: SigningSecrets;
  readonly #dispatcher: Dispatcher;
  readonly #allowed: AllowList;

  /** `allowed`: private addresses that webhooks may reach. */
  constructor(
    context: Context,
    { agents, secrets, dispatcher }: WebhookCollaborators,
    allowed: AllowList,
  ) {
    this.#context = context;
    this.#agents = agents;
    this.#secrets = secrets;
    this.#dispatcher = dispatcher;
    this.#allowed = allowed;
  }

  /** The organization's webhook, or `404`. */
  async find(organizationId: string, id: string): Promise<WebhookRow> {
    const { read } = this.#context.database;
    const row = isId(id) ? await findWebhook(read, organizationId, id) : undefined;
    if (row === undefined) throw notFound('Webhook');
    return row;
  }

  /** `404` for an unknown webhook, and `403` for a caller that may not read what its events are about. */
  async admitReader(caller: Writer, id: string): Promise<void> {
    this.#requireReadable(caller, eventsOf(await this.find(caller.organizationId, id)));
  }

  /** Creates a webhook. Only this answer shows its secret. */
  async create(writer: Writer, fields: NewWebhook) {
    const { database, clock, config } = this.#context;
    const { organizationId } = writer;
    const now = clock.now();
    const { agent_id, url, events } = fields;
    const secret = fields.secret === undefined ? newSecret() : usableSecret(fields.secret);
    const to = destination(url, this.#allowed);
    this.#requireReadable(writer, events);
    requireEventsOfAgent(agent_id, events);
    const id = newId();
    const stored = this.#secrets.seal('webhooks', { id, organization_id: organizationId }, secret);
    await database.write(async (tx) => {
      await requireRoom(tx, organizationId, capsFor(config, agent_id));
      if (agent_id !== allAgents) await this.#agents.lock(tx, organizationId, agent_id);
      await insertWebhook(tx, {
        id,
        organization_id: organizationId,
        agent_id,
        ...to,
        events: JSON.stringify(events),
        ...stored,
        active: 1,
        failing: 0,
        consecutive_failures: 0,
        active_since: await currentPlace(tx),
        removed: 0,
        last_delivery_at: null,
        created_at: now,
        updated_at: now,
      });
      tx.afterCommit(() => this.#dispatcher.wake());
    });
    try {
      await awaitEarlierAppenders(database);
    } catch (error) {
      // The caller does not learn its id, and may create it again.
      await this.remove(organizationId, id);
      throw error;
    }
    const timestamps = { created_at: timestamp(now), updated_at: timestamp(now) };
    return { id, agent_id, url, events: [...events], secret, active: true, ...timestamps };
  }

  async list(organizationId: string) {
    const rows = await listWebhooks(this.#context.database.read, organizationId);
    return rows.map(webhookBody);
  }

  async get(organizationId: string, id: string) {
    return webhookBody(await this.find(organizationId, id));
  }

  /** Changes the fields that `changes` names. */
  async update(writer: Writer, id: string, changes: WebhookChanges) {
    const { database, clock } = this.#context;
    const { organizationId } = writer;
    const { active, events } = changes;
    const given = this.#columnsOf(id, organizationId, changes);
    const changed = await database.write(async (tx) => {
      const place = active === true ? await currentPlace(tx) : '';
      const before = await lockWebhook(tx, organizationId, id);
      if (before === undefined) throw notFound('Webhook');
      // Also before the change: another url or secret would give the events to its author.
      if (!onlyStops(changes)) {
        this.#requireReadable(writer, [...eventsOf(before), ...(events ?? [])]);
      }
      requireEventsOfAgent(before.agent_id, events ?? []);
      const now = clock.now();
      const columns = {
        ...given,
        ...(active === false ? { active: 0 } : {}),
        ...(active === true && before.active === 0
          ? { active: 1, active_since: place, consecutive_failures: 0 }
          : {}),
      };
      // An empty body changes nothing; a field with its current value still counts as a change.
      if (Object.keys(changes).length === 0) return webhookBody(before);
      await updateWebhook(tx, id, { ...columns, updated_at: now });
      if (active === false) await this.#cancelPending(tx, id, now);
      // Deliveries that the sweep has not cancelled since the deactivation must not be sent now.
      if (before.active === 0) while (await this.#cancelPending(tx, id, now));
      if (active === true) tx.afterCommit(() => this.#dispatcher.wake());
      return webhookBody({ ...before, ...columns, updated_at: now });
    });
    if (active === true || events !== undefined) await awaitEarlierAppenders(database);
    return changed;
  }

  async remove(organizationId: string, id: string): Promise<void> {
    const { database, writer } = this.#context;
    await database.write(async (tx) => {
      if ((await lockWebhook(tx, organizationId, id)) === undefined) throw notFound('Webhook');
      await removeWebhook(tx, writer, id);
    });
  }

  /** Throws `403` unless the writer may read what these events are about. */
  #requireReadable({ scopes }: Writer, types: readonly EventType[]): void {
    const isStrict = this.#context.config.apiKeyPermissions === 'strict';
    requireScopes(scopes, scopesToRead(types, isStrict));
  }

  /** The columns of the changed fields, without `active`. */
  #columnsOf(id: string, organizationId: string, { url, events, secret }: WebhookChanges) {
    const owner = { id, organization_id: organizationId };
    return {
      ...(url === undefined ? {} : destination(url, this.#allowed)),
      ...(events === undefined ? {} : { events: JSON.stringify(events) }),
      ...(secret === undefined ? {} : this.#secrets.seal('webhooks', owner, usableSecret(secret))),
    };
  }

  /** Cancels a batch of pending deliveries; whether there were any. */
  async #cancelPending(tx: Transaction, id: string, now: number): Promise<boolean> {
    const changes = await cancelPendingBatch(tx, id, now);
    await deliveryCounts.change(tx, this.#context.writer, changes);
    return changes.length > 0;
  }
}

const caps = { table: 'webhooks', things: 'webhooks' } as const;

function capsFor({ webhooksMax, agentWebhooksMax }: Config, agentId: string): readonly Cap[] {
  const ofThisAgent = { agent_id: agentId, removed: 0 };
  return [
    { ...caps, where: { removed: 0 }, max: webhooksMax },
    { ...caps, owner: ownerOf(agentId), where: ofThisAgent, max: agentWebhooksMax },
  ];
}

const ownerOf = (agentId: string) => (agentId === allAgents ? 'The agent_id "*"' : 'The agent');

/** Throws `400` for events that a webhook of one agent would never get. */
function requireEventsOfAgent(agentId: string, types: readonly EventType[]): void {
  if (agentId === allAgents) return;
  const type = types.find((one) => organizationEvents.has(one));
  if (type !== undefined) {
    throw invalid('events', `may have ${type} only in a webhook for all agents, with agent_id "*"`);
  }
}

/** The columns that depend on the url; throws `400` on `url`. */
function destination(url: string, allowed: AllowList): Pick<WebhookRow, 'url' | 'host'> {
  const checked = checkUrl(url, { schemes: ['https:'], fragment: 'refused', allowed });
  if (!checked.ok) throw invalid('url', checked.reason);
  return { url, host: checked.url.host };
}

/** Whether a change only ends the deliveries of a webhook. Any key may make it, as it may delete the webhook. */
function onlyStops(changes: WebhookChanges): boolean {
  return changes.active === false && Object.keys(changes).length === 1;
}

/** The secret if it can be used; throws `400` otherwise. */
function usableSecret(secret: string): string {
  const fault = secretFault(secret);
  if (fault !== null) throw invalid('secret', fault);
  return secret;
}

/** A random secret in the format of the Standard Webhooks specification. */
function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

function eventsOf({ events }: Pick<WebhookRow, 'events'>): EventType[] {
  return JSON.parse(events) as EventType[];
}

/** A webhook as the API shows it. */
function webhookBody(row: WebhookRow) {
  return {
    id: row.id,
    agent_id: row.agent_id,
    url: row.url,
    events: eventsOf(row),
    active: row.active === 1,
    failing: row.failing === 1,
    consecutive_failures: row.consecutive_failures,
    last_delivery_at: timestampOrNull(row.last_delivery_at),
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  };
}
