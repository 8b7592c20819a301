import type { SigningSecrets } from '../../adapters/database/signing-secrets.ts';
import { parseAllowList } from '../../adapters/egress/allow-list.ts';
import type { Agents } from '../../core/agents/agents.ts';
import type { Context } from '../../core/context/context.ts';
import type { Jobs } from '../../core/jobs/jobs.ts';
import { Deliverer } from '../../platform/webhooks/deliver.ts';
import { Deliveries } from '../../platform/webhooks/deliveries.ts';
import { Dispatcher } from '../../platform/webhooks/dispatch.ts';
import { Listeners } from '../../platform/webhooks/listen.ts';
import { DeliveryRecovery } from '../../platform/webhooks/recover.ts';
import { Sender } from '../../platform/webhooks/send.ts';
import { type DeliveryObserver, DeliverySettler } from '../../platform/webhooks/settle.ts';
import { UnconfirmedDeliveryClaims } from '../../platform/webhooks/unconfirmed-claims.ts';
import { Webhooks } from '../../platform/webhooks/webhooks.ts';
import type { ClusterTimes } from './cluster-times.ts';
import type { Parts } from './parts.ts';

/** A lease is longer than an attempt by this much. An attempt without a settlement by then is lost. */
const leaseMarginMs = 20_000;

export interface WebhookSettings {
  readonly times: ClusterTimes;
  /** How requests leave; `sender` replaces the network in tests. */
  readonly egress?: Parts['webhookEgress'];
  readonly sender?: Sender;
  readonly observe: DeliveryObserver;
}

/** Webhooks and the way of events to their receivers. Close `sender` after the last attempt has ended. */
export function composeWebhooks(
  context: Context,
  {
    agents,
    secrets,
    jobs,
  }: { readonly agents: Agents; readonly secrets: SigningSecrets; readonly jobs: Jobs },
  settings: WebhookSettings,
) {
  const { webhookTimeoutMs: timeoutMs, webhookAllowCidrs: ranges } = context.config;
  const allowed = parseAllowList(ranges ?? undefined);
  if (allowed.length > 0) {
    context.log.warn({ ranges }, 'WEBHOOK_ALLOW_CIDRS lets webhooks reach private addresses');
  }
  const sender = settings.sender ?? new Sender({ allowed, timeoutMs, ...settings.egress });
  const times = { ...settings.times, leaseMs: timeoutMs + leaseMarginMs };
  const dispatcher = new Dispatcher(context);
  const settler = new DeliverySettler(context, settings.observe);
  const unconfirmed = new UnconfirmedDeliveryClaims(context, times.leaseMs);
  const deliverer = new Deliverer(context, { secrets, sender, settler, unconfirmed }, times);
  return {
    webhooks: new Webhooks(context, { agents, secrets, dispatcher }, allowed),
    listeners: new Listeners(context),
    deliveries: new Deliveries(context, jobs),
    dispatcher,
    deliverer,
    unconfirmed,
    recovery: new DeliveryRecovery(context, { settler, deliverer }, times),
    sender,
  };
}
