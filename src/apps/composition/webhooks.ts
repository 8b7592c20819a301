import type { SigningSecrets } from '../../adapters/database/signing-secrets.ts';
import { parseAllowList } from '../../adapters/egress/allow-list.ts';
import type { Agents } from '../../core/agents/agents.ts';
import type { Config } from '../../core/config/config.ts';
import type { Context } from '../../core/context/context.ts';
import { createDeliverer } from '../../platform/webhooks/deliver.ts';
import { createDeliveries } from '../../platform/webhooks/deliveries.ts';
import { createDispatcher } from '../../platform/webhooks/dispatch.ts';
import { createListeners } from '../../platform/webhooks/listen.ts';
import { DeliveryRecovery } from '../../platform/webhooks/recover.ts';
import { openSender, type Sender } from '../../platform/webhooks/send.ts';
import { createSettle, type SettleDeps } from '../../platform/webhooks/settle.ts';
import { openUnconfirmedClaims } from '../../platform/webhooks/unconfirmed-claims.ts';
import { createWebhooks } from '../../platform/webhooks/webhooks.ts';
import type { ClusterTimes } from './cluster-times.ts';
import type { Parts } from './parts.ts';

/** A lease is longer than an attempt by this much. An attempt without a settlement by then is lost. */
const leaseMarginMs = 20_000;

export interface WebhooksDeps {
  readonly base: Context;
  readonly config: Pick<
    Config,
    | 'webhookRetryDelays'
    | 'webhookTimeoutMs'
    | 'webhookAllowCidrs'
    | 'webhooksMax'
    | 'agentWebhooksMax'
    | 'apiKeyPermissions'
  > & { readonly times: ClusterTimes };
  /** Of other slices. */
  readonly slices: { readonly agents: Agents; readonly secrets: SigningSecrets };
  /** How requests leave; `sender` replaces the network in tests. */
  readonly network: { readonly egress?: Parts['webhookEgress']; readonly sender?: Sender };
  readonly observe: SettleDeps['observe'];
}

/** Webhooks and the way of events to their receivers. Call `close` after the last attempt has ended. */
export function composeWebhooks(deps: WebhooksDeps) {
  const { base, config, network, observe } = deps;
  const { agents, secrets } = deps.slices;
  const { webhookTimeoutMs: timeoutMs, webhookAllowCidrs: ranges } = config;
  const allowed = parseAllowList(ranges ?? undefined);
  if (allowed.length > 0) {
    base.log.warn({ ranges }, 'WEBHOOK_ALLOW_CIDRS lets webhooks reach private addresses');
  }
  const { send, close } = network.sender ?? openSender({ allowed, timeoutMs, ...network.egress });
  const times = { ...config.times, leaseMs: timeoutMs + leaseMarginMs };
  const caps = { ofOrganization: config.webhooksMax, ofAgent: config.agentWebhooksMax };
  const dispatcher = createDispatcher(base);
  const settle = createSettle({ ...base, delaysMs: config.webhookRetryDelays, observe });
  const unconfirmed = openUnconfirmedClaims(base, times.leaseMs);
  const claims = { settle, unconfirmed };
  const deliverer = createDeliverer({ base, secrets, send, claims, times });
  const recovery = new DeliveryRecovery(base, { settle, deliverer }, times);
  const onActive = dispatcher.wake;
  const isStrict = config.apiKeyPermissions === 'strict';
  const rules = { allowed, caps, isStrict };
  const webhooks = createWebhooks({ ...base, agents, secrets, rules, onActive });
  const listeners = createListeners(base);
  const deliveries = createDeliveries(base);
  const verbs = { webhooks, listeners, deliveries, isStrict };
  return { ...verbs, dispatcher, deliverer, unconfirmed, recovery, close };
}
