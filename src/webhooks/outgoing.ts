/** Composes the parts of outgoing webhooks. */
import type { SigningSecrets } from '../database/signing-secrets.ts';
import { type AllowList, parseAllowList } from '../egress/allow-list.ts';
import type { Resolve } from '../egress/system-resolver.ts';
import { createDeliverer, type DeliverDeps } from './deliver.ts';
import { createDeliveries } from './deliveries.ts';
import { createDispatcher } from './dispatch.ts';
import { createDeliveryRecovery, type DeliveryRecoverDeps } from './recover.ts';
import { openSender, type Sender } from './send.ts';
import { createSettle, type SettleDeps } from './settle.ts';
import { createWebhooks, type WebhooksDeps } from './webhooks.ts';

/** A lease is longer than an attempt by this much. An attempt without a settlement by then is lost. */
const leaseMarginMs = 20_000;

/** For tests: additional certificate authorities in PEM, another resolver. */
export interface WebhookEgress {
  readonly ca?: string;
  readonly resolve?: Resolve;
}

/** What the parts need, where this file does not make it. */
export interface OutgoingOptions
  extends Omit<WebhooksDeps, 'secrets' | 'allowed' | 'onActive'>,
    Omit<DeliverDeps, 'secrets' | 'send' | 'settle' | 'leaseMs'>,
    Pick<DeliveryRecoverDeps, 'hintRetryMs' | 'graceMs'>,
    SettleDeps {
  readonly secrets: SigningSecrets;
  /** Of an attempt. */
  readonly timeoutMs: number;
  /** Private address ranges that webhooks may reach, comma-separated. */
  readonly allowCidrs: string | null;
  readonly egress?: WebhookEgress | undefined;
  /** Replaces the network in tests. */
  readonly sender?: Sender;
}

export type OutgoingWebhooks = ReturnType<typeof createOutgoingWebhooks>;

export function createOutgoingWebhooks(options: OutgoingOptions) {
  const { database, queue, agents, clock, log, writer, secrets } = options;
  const { delaysMs, timeoutMs, observe } = options;
  const allowed = parseAllowList(options.allowCidrs ?? undefined);
  if (allowed.length > 0) {
    log.warn(
      { ranges: options.allowCidrs },
      'WEBHOOK_ALLOW_CIDRS lets webhooks reach private addresses',
    );
  }
  const common = { database, queue, clock, log, writer };
  const sender = options.sender ?? networkSender(allowed, options);
  const dispatcher = createDispatcher(common);
  const settle = createSettle({ ...common, delaysMs, observe });
  const leaseMs = timeoutMs + leaseMarginMs;
  const { clockSkewMs, hintRetryMs, graceMs } = options;
  const deliverer = createDeliverer({
    ...common,
    secrets,
    send: sender.send,
    settle,
    leaseMs,
    clockSkewMs,
  });
  const { fullHosts } = deliverer;
  const recovery = createDeliveryRecovery({
    ...common,
    settle,
    leaseMs,
    fullHosts,
    hintRetryMs,
    graceMs,
  });
  return {
    webhooks: createWebhooks({
      database,
      agents,
      clock,
      writer,
      secrets,
      allowed,
      onActive: dispatcher.wake,
      caps: options.caps,
    }),
    deliveries: createDeliveries(common),
    dispatcher,
    deliverer,
    recovery,
    /** Call it after the last attempt has ended. */
    close: () => sender.close(),
  };
}

function networkSender(allowed: AllowList, { timeoutMs, egress = {} }: OutgoingOptions): Sender {
  return openSender({ allowed, timeoutMs, ca: egress.ca, resolve: egress.resolve });
}
