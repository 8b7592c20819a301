/**
 * Forwards new deliveries of webhooks to an address of the developer's machine, which the platform cannot reach: their
 * bodies as they were made, signed anew. It asks the platform's log of deliveries, so every webhook goes on as before.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import type { Client } from '@skillwright/client';
import { messageHeaders } from '../webhooks/message.ts';
import { listOf, path } from './connection.ts';
import type { Io } from './io.ts';

interface Webhook {
  readonly id: string;
  readonly url: string;
}

interface Delivery {
  readonly id: string;
  readonly event: string;
}

export interface Forwarded {
  readonly delivery_id: string;
  readonly event: string;
  /** Of the local address; null if it did not answer. */
  readonly status: number | null;
  readonly error: string | null;
}

export interface ForwardDeps {
  readonly io: Pick<Io, 'fetch' | 'now' | 'interrupted'>;
  readonly client: Client;
  /** Where to. */
  readonly target: string;
  readonly secret: string;
  onForwarded(forwarded: Forwarded): void;
}

/** Between two looks, for each webhook: a key may have 100 requests a minute. */
const everyMs = 1_000;
/** Deliveries of a webhook that one look sees; more between two looks are left out. */
const lookMax = 100;
/** As long as a receiver has for a delivery of the platform. */
const timeoutMs = 10_000;

/** The webhooks whose deliveries are forwarded: all of the key's organization, or the one named. */
export async function webhooksOf(client: Client, id: string | undefined): Promise<Webhook[]> {
  if (id === undefined) {
    return [...(await listOf<Webhook>(client, { path: '/api/agent-webhooks' })).data];
  }
  return [await client.request<Webhook>({ method: 'GET', path: path`/api/agent-webhooks/${id}` })];
}

/** Forwards what is delivered from now on; ends only when interrupted, with the reason of the signal. */
export async function forwardDeliveries(
  deps: ForwardDeps,
  webhooks: readonly Webhook[],
): Promise<never> {
  const { client, io } = deps;
  const seen = new Map<string, ReadonlySet<string>>();
  for (;;) {
    for (const { id } of webhooks) {
      const page = await client.request<{ data: readonly Delivery[] }>({
        method: 'GET',
        path: path`/api/agent-webhooks/${id}/deliveries`,
        query: { limit: lookMax },
      });
      const known = seen.get(id);
      seen.set(id, new Set(page.data.map((delivery) => delivery.id)));
      // The first look tells what there was before.
      const fresh = known === undefined ? [] : page.data.filter((one) => !known.has(one.id));
      for (const delivery of fresh.toReversed()) await forward(deps, id, delivery);
      await elapsed(everyMs, undefined, { signal: io.interrupted });
    }
  }
}

async function forward(deps: ForwardDeps, webhookId: string, { id }: Delivery): Promise<void> {
  const { client, io, target, secret, onForwarded } = deps;
  const { event, body } = await client.request<Delivery & { body: string }>({
    method: 'GET',
    path: path`/api/agent-webhooks/${webhookId}/deliveries/${id}`,
  });
  const headers = messageHeaders({ id, event, body }, secret, io.now());
  const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), io.interrupted]);
  try {
    const init = { method: 'POST', headers, body, redirect: 'manual', signal } as const;
    const response = await io.fetch(target, init);
    await response.body?.cancel();
    onForwarded({ delivery_id: id, event, status: response.status, error: null });
  } catch (error) {
    io.interrupted.throwIfAborted();
    const { message, cause } = error as Error;
    const reason = cause instanceof Error && cause.message !== '' ? cause.message : message;
    onForwarded({ delivery_id: id, event, status: null, error: reason });
  }
}
