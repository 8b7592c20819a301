import type { Agents } from '../agents/agents.ts';
import type { Config } from '../config/config.ts';
import type { SigningSecrets } from '../database/signing-secrets.ts';
import { createOutgoingWebhooks, type OutgoingOptions } from '../webhooks/outgoing.ts';
import type { ClusterTimes } from './cluster-times.ts';
import type { Foundation, Parts } from './parts.ts';

export interface WebhooksDeps {
  readonly base: Foundation;
  readonly config: Pick<
    Config,
    | 'webhookRetryDelays'
    | 'webhookTimeoutMs'
    | 'webhookAllowCidrs'
    | 'webhooksMax'
    | 'agentWebhooksMax'
  >;
  readonly agents: Agents;
  readonly secrets: SigningSecrets;
  readonly egress: Parts['webhookEgress'];
  readonly times: ClusterTimes;
  readonly observe: OutgoingOptions['observe'];
}

/** Webhooks and the way of events to their receivers. */
export function composeWebhooks(deps: WebhooksDeps) {
  const { base, config, agents, secrets, egress, times, observe } = deps;
  return createOutgoingWebhooks({
    ...base,
    ...times,
    agents,
    secrets,
    delaysMs: config.webhookRetryDelays,
    timeoutMs: config.webhookTimeoutMs,
    allowCidrs: config.webhookAllowCidrs,
    egress,
    caps: { ofOrganization: config.webhooksMax, ofAgent: config.agentWebhooksMax },
    observe,
  });
}
