/** What tests of outgoing webhooks do again and again, through the API alone. */
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { expect } from 'vitest';
import type { Tenant } from './tenant.ts';
import type { Received } from './tls-receiver.ts';
import { waitFor } from './wait-for.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
type Body = any;

/** A webhook of the agent `default`, for changes of its status unless `fields` say otherwise. */
export async function newWebhook(
  tenant: Tenant,
  url: string,
  fields: Record<string, unknown> = {},
): Promise<Body> {
  const { status, body, text } = await tenant.post('/api/agent-webhooks', {
    agent_id: 'default',
    url,
    events: ['agent.status_changed'],
    ...fields,
  });
  if (status !== 201) throw new Error(`No webhook: ${text}`);
  return body;
}

/** Makes something happen that is one event, `agent.status_changed`, and nothing else. */
export async function happen(tenant: Tenant, agentId = 'default'): Promise<void> {
  const path = `/api/agents/${agentId}`;
  const { body: agent } = await tenant.get(path);
  const { status } = await tenant.put(path, {
    status: agent.status === 'active' ? 'paused' : 'active',
  });
  if (status !== 200) throw new Error(`No agent ${agentId}`);
}

/** The webhook as it is shown now. */
export async function webhookNow(tenant: Tenant, { id }: { id: string }): Promise<Body> {
  return (await tenant.get(`/api/agent-webhooks/${id}`)).body;
}

/** The newest deliveries of a webhook, newest first. */
export async function deliveriesOf(tenant: Tenant, { id }: { id: string }): Promise<Body[]> {
  return (await tenant.get(`/api/agent-webhooks/${id}/deliveries?limit=200`)).body.data;
}

/** The newest delivery, once it is as wanted. */
export async function deliveryOnce(
  tenant: Tenant,
  webhook: { id: string },
  isAsWanted: (delivery: Body) => boolean,
): Promise<Body> {
  let last: Body[] = [];
  return await waitFor(
    async () => {
      last = await deliveriesOf(tenant, webhook);
      return last[0] !== undefined && isAsWanted(last[0]) ? last[0] : null;
    },
    {
      describe: () => `a delivery ${isAsWanted}; there is: ${JSON.stringify(last[0])}`,
      deadlineMs: 15_000,
    },
  );
}

/** The newest delivery, once it is in this state. */
export function deliveryIn(tenant: Tenant, webhook: { id: string }, status: string): Promise<Body> {
  return deliveryOnce(tenant, webhook, (delivery) => delivery.status === status);
}

/** Checks both signatures, ours with plain crypto and that of Standard Webhooks with its library. */
export function expectSigned({ headers, body }: Received, secret: string): void {
  const hex = createHmac('sha256', Buffer.from(secret, 'utf8')).update(body).digest('hex');
  expect(headers['x-service-signature']).toBe(hex);
  const library = secret.startsWith('whsec_')
    ? new Webhook(secret)
    : new Webhook(Buffer.from(secret, 'utf8'), { format: 'raw' });
  const at = new Date(Number(headers['webhook-timestamp']) * 1000);
  expect(headers['webhook-signature']).toBe(library.sign(headers['webhook-id'] ?? '', at, body));
}
