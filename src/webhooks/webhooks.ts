/**
 * Webhooks: the addresses to which an agent's events are delivered. A webhook gets the events that happen
 * after it became active. Switching it off or deleting it cancels its pending deliveries.
 */
import { randomBytes } from 'node:crypto';
import type { Agents } from '../agents/agents.ts';
import { type Cap, requireRoom } from '../database/caps.ts';
import type { Writer } from '../database/counts.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { SigningSecrets } from '../database/signing-secrets.ts';
import type { AllowList } from '../egress/allow-list.ts';
import { checkUrl } from '../egress/url-guard.ts';
import type { EventType } from '../events/events.ts';
import { type Clock, timestamp, timestampOrNull } from '../kernel/clock.ts';
import { invalid, notFound } from '../kernel/errors.ts';
import { isId, newId } from '../kernel/ids.ts';
import { secretFault } from '../kernel/webhook-signature.ts';
import { cancelPendingBatch, removeWebhook } from './cleanup.ts';
import { changeDeliveryCounts } from './deliveries.store.ts';
import { currentPlace } from './dispatch.ts';
import {
  findWebhook,
  insertWebhook,
  listWebhooks,
  lockWebhook,
  updateWebhook,
  type WebhookRow,
} from './webhooks.store.ts';

/** The fields of a webhook that a client may change. */
export interface WebhookChanges {
  url?: string;
  events?: readonly EventType[];
  secret?: string;
  active?: boolean;
}

export interface NewWebhook {
  agent_id: string;
  url: string;
  events: readonly EventType[];
  secret?: string;
}

/** The limits on the number of webhooks. */
export interface WebhookCaps {
  readonly ofOrganization: number;
  readonly ofAgent: number;
}

export type Webhooks = ReturnType<typeof createWebhooks>;

export function createWebhooks(parts: {
  database: Database;
  agents: Pick<Agents, 'lock'>;
  clock: Clock;
  writer: Writer;
  secrets: Pick<SigningSecrets, 'seal'>;
  /** Private addresses that webhooks may reach. */
  allowed: AllowList;
  /** Called after the commit when a webhook has become active. */
  onActive(): void;
  caps?: WebhookCaps | undefined;
}) {
  const { database, agents, clock, writer, secrets, allowed, onActive } = parts;
  const cap = { table: 'webhooks', things: 'webhooks' } as const;

  function capsFor(agentId: string): readonly Cap[] {
    if (parts.caps === undefined) return [];
    const { ofOrganization, ofAgent } = parts.caps;
    const ofThisAgent = { agent_id: agentId, removed: 0 };
    return [
      { ...cap, where: { removed: 0 }, max: ofOrganization },
      { ...cap, owner: 'The agent', where: ofThisAgent, max: ofAgent },
    ];
  }

  async function find(organizationId: string, id: string): Promise<WebhookRow> {
    const row = isId(id) ? await findWebhook(database.read, organizationId, id) : undefined;
    if (row === undefined) throw notFound('Webhook');
    return row;
  }

  /** The columns that depend on the url; throws `400` on `url`. */
  function destination(url: string): Pick<WebhookRow, 'url' | 'host'> {
    const checked = checkUrl(url, { schemes: ['https:'], fragment: 'refused', allowed });
    if (!checked.ok) throw invalid('url', checked.reason);
    return { url, host: checked.url.host };
  }

  /** Cancels a batch of pending deliveries; whether there were any. */
  async function cancelPending(tx: Transaction, id: string, now: number): Promise<boolean> {
    const changes = await cancelPendingBatch(tx, id, now);
    await changeDeliveryCounts(tx, writer, changes);
    return changes.length > 0;
  }

  return {
    find,

    /** Creates a webhook. Only this answer shows its secret. */
    async create(organizationId: string, fields: NewWebhook) {
      const now = clock.now();
      const { agent_id, url, events } = fields;
      const secret = fields.secret === undefined ? newSecret() : usableSecret(fields.secret);
      const to = destination(url);
      const id = newId();
      const stored = secrets.seal('webhooks', { id, organization_id: organizationId }, secret);
      await database.write(async (tx) => {
        await requireRoom(tx, organizationId, capsFor(agent_id));
        await agents.lock(tx, organizationId, agent_id);
        const created: WebhookRow = {
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
        };
        await insertWebhook(tx, created);
        tx.afterCommit(onActive);
      });
      const timestamps = { created_at: timestamp(now), updated_at: timestamp(now) };
      return { id, agent_id, url, events: [...events], secret, active: true, ...timestamps };
    },

    async list(organizationId: string) {
      return (await listWebhooks(database.read, organizationId)).map(webhookBody);
    },

    async get(organizationId: string, id: string) {
      return webhookBody(await find(organizationId, id));
    },

    /** Changes the fields that `changes` names. */
    async update(organizationId: string, id: string, changes: WebhookChanges) {
      const given = {
        ...(changes.url === undefined ? {} : destination(changes.url)),
        ...(changes.events === undefined ? {} : { events: JSON.stringify(changes.events) }),
        ...(changes.secret === undefined
          ? {}
          : secrets.seal(
              'webhooks',
              { id, organization_id: organizationId },
              usableSecret(changes.secret),
            )),
      };
      return database.write(async (tx) => {
        const place = changes.active === true ? await currentPlace(tx) : '';
        const before = await lockWebhook(tx, organizationId, id);
        if (before === undefined) throw notFound('Webhook');
        const now = clock.now();
        const columns = {
          ...given,
          ...(changes.active === false ? { active: 0 } : {}),
          ...(changes.active === true && before.active === 0
            ? { active: 1, active_since: place, consecutive_failures: 0 }
            : {}),
        };
        // An empty body changes nothing; a field with its current value still counts as a change.
        if (Object.keys(changes).length === 0) return webhookBody(before);
        await updateWebhook(tx, id, { ...columns, updated_at: now });
        if (changes.active === false) await cancelPending(tx, id, now);
        // Deliveries that the sweep has not cancelled since the deactivation must not be sent now.
        if (before.active === 0) while (await cancelPending(tx, id, now));
        if (changes.active === true) tx.afterCommit(onActive);
        return webhookBody({ ...before, ...columns, updated_at: now });
      });
    },

    async remove(organizationId: string, id: string): Promise<void> {
      await database.write(async (tx) => {
        if ((await lockWebhook(tx, organizationId, id)) === undefined) throw notFound('Webhook');
        await removeWebhook(tx, writer, id);
      });
    },
  };
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

/** A webhook as the API shows it. */
function webhookBody(row: WebhookRow) {
  return {
    id: row.id,
    agent_id: row.agent_id,
    url: row.url,
    events: JSON.parse(row.events) as EventType[],
    active: row.active === 1,
    failing: row.failing === 1,
    consecutive_failures: row.consecutive_failures,
    last_delivery_at: timestampOrNull(row.last_delivery_at),
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  };
}
