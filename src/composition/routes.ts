/** Which routes there are, and what stands before them: the whole API in one place. */

import { agentRoutes } from '../agents/agents.routes.ts';
import { apiKeyRoutes } from '../api-keys/api-keys.routes.ts';
import { consoleRoutes } from '../console/console.routes.ts';
import { createSessions } from '../console/sessions.ts';
import { conversationRoutes } from '../conversations/conversations.routes.ts';
import { credentialRoutes } from '../credentials/credentials.routes.ts';
import { adminHook, apiKeyHook, isStillAdmitted } from '../http/authenticate.ts';
import { createConcurrencyLimit } from '../http/concurrency-limit.ts';
import { docsRoutes } from '../http/docs.ts';
import { guarded } from '../http/guarded.ts';
import { type Health, healthRoutes } from '../http/health.ts';
import { type MetricsSource, metricsRoutes } from '../http/metrics.ts';
import { openApiRoutes } from '../http/openapi.ts';
import type { RateLimiter } from '../http/rate-limit.ts';
import type { Server } from '../http/server.ts';
import { createStreams } from '../http/streams.ts';
import { createWrongSecrets } from '../http/wrong-secrets.ts';
import { executionRoutes } from '../jobs/execution.routes.ts';
import { jobRoutes } from '../jobs/jobs.routes.ts';
import { beginning, jobStream } from '../jobs/stream.ts';
import type { Clock } from '../kernel/clock.ts';
import type { PlatformError } from '../kernel/errors.ts';
import { memoryRoutes } from '../memories/memories.routes.ts';
import { processAdminRoutes } from '../processes/processes.routes.ts';
import { scheduledJobRoutes } from '../schedules/schedules.routes.ts';
import { skillAdminRoutes, skillRoutes } from '../skills/skills.routes.ts';
import { reservedCategories } from '../skills/sources/skill-shape.ts';
import { statisticsRoutes } from '../statistics/statistics.routes.ts';
import { triggerRoutes } from '../triggers/triggers.routes.ts';
import { webhookTriggerRoutes } from '../triggers/webhook-trigger.routes.ts';
import { usageAdminRoutes, usageRoutes } from '../usage/usage.routes.ts';
import { deliveryRoutes } from '../webhooks/deliveries.routes.ts';
import { webhookRoutes } from '../webhooks/webhooks.routes.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

/** What the routes of a server need beside the slices. */
interface Surroundings {
  readonly parts: Pick<
    Parts,
    'adminSecret' | 'config' | 'version' | 'database' | 'consoleFiles' | 'executors' | 'log'
  >;
  readonly slices: Slices;
  readonly clock: Clock;
  readonly limiter: RateLimiter;
  readonly health: Health;
  readonly source: MetricsSource;
  /** The OpenAPI document, made of these routes. */
  readonly document: () => Promise<Buffer>;
  readonly unmatched: (method: string, url: string) => PlatformError;
  /** Aborts when the platform stops. */
  readonly stopping: AbortSignal;
}

export function registerRoutes(target: Server, surroundings: Surroundings): void {
  const { parts, slices, clock, limiter, health, source, document, unmatched, stopping } =
    surroundings;
  const { version, database } = parts;
  const { feed, metrics, apiKeys, agents, memories, skills, conversations, credentials } = slices;
  const { jobs, schedules, statistics, usage, budgets, execute, triggers, receive, outgoing } =
    slices;
  const { triggerCalls: calls } = slices;
  healthRoutes(target, { health, version });
  metricsRoutes(target, { metrics, source });
  if (!parts.config.roles.has('api')) return;
  openApiRoutes(target, { document });
  docsRoutes(target);
  const sessions = createSessions({ database, apiKeys, adminSecret: parts.adminSecret, clock });
  const wrongSecrets = createWrongSecrets({
    perMinute: parts.config.wrongSecretsPerMinute,
    limiter,
    clock,
    log: parts.log,
  });
  if (parts.consoleFiles) {
    consoleRoutes(target, { files: parts.consoleFiles, sessions, wrongSecrets });
  }
  const secretHook = adminHook(parts.adminSecret, sessions, wrongSecrets);
  guarded(target, '/admin', secretHook, unmatched, (scope) => {
    apiKeyRoutes(scope, { apiKeys, clock, endJobsOfKey: slices.endJobsOfKey });
    skillAdminRoutes(scope, { skills, leftOut: parts.executors?.leftOut ?? [] });
    credentialRoutes(scope, { credentials });
    usageAdminRoutes(scope, { usage, budgets });
    processAdminRoutes(scope, { listProcesses: slices.living.list });
  });
  webhookTriggerRoutes(target, { triggers, receive, calls, clock, limiter, unmatched });
  const requests = createConcurrencyLimit(
    parts.config.requestsPerKeyMax,
    'requests of one API key',
  );
  const keyHook = apiKeyHook(apiKeys.verify, limiter, sessions, requests);
  guarded(target, '/api', keyHook, unmatched, (scope) => {
    skillRoutes(scope, { skills });
    agentRoutes(scope, { agents });
    memoryRoutes(scope, { memories });
    conversationRoutes(scope, { conversations });
    triggerRoutes(scope, { triggers, calls, publicUrl: parts.config.publicUrl });
    webhookRoutes(scope, outgoing);
    deliveryRoutes(scope, { ...outgoing, findJob: jobs.find });
    jobRoutes(scope, {
      jobs,
      stopping,
      beginStream: createStreams({
        perKey: parts.config.streamsPerKeyMax,
        perAddress: parts.config.streamsPerAddressMax,
        isAdmitted: (request) => isStillAdmitted(request, apiKeys.verify, sessions),
        stopping,
        log: parts.log,
      }),
      originOf: async (organizationId, { job_id, trigger_type }) => ({
        scheduled_job_id:
          trigger_type === 'scheduled'
            ? ((await schedules.ofJob(organizationId, job_id)) ?? null)
            : null,
        trigger_id: trigger_type === 'webhook' ? ((await calls.triggerOf(job_id)) ?? null) : null,
      }),
      openStream: (organizationId, jobId, after, signal) =>
        jobStream({ database, feed }, organizationId, jobId, after ?? beginning, signal),
    });
    scheduledJobRoutes(scope, { schedules, unmatched });
    usageRoutes(scope, { usage, budgets });
    statisticsRoutes(scope, { statistics });
    executionRoutes(scope, {
      execute,
      jobs,
      reserved: reservedCategories,
      unmatched,
      stopping,
    });
  });
}
