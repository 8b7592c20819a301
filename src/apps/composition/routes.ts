/** Which routes there are, and what stands before them: the whole API in one place. */

import type { FastifyRequest } from 'fastify';
import type { TriggerType } from '../../adapters/database/tables.ts';
import { adminHook } from '../../adapters/http/authenticate.ts';
import { ConcurrencyLimit } from '../../adapters/http/concurrency-limit.ts';
import { docsRoutes } from '../../adapters/http/docs.ts';
import { guarded } from '../../adapters/http/guarded.ts';
import { builtGuide, guideRoutes } from '../../adapters/http/guide.ts';
import { type Health, healthRoutes } from '../../adapters/http/health.ts';
import { metricsRoutes } from '../../adapters/http/metrics.ts';
import { type ApiDocument, openApiRoutes } from '../../adapters/http/openapi.ts';
import type { RateLimiter } from '../../adapters/http/rate-limit.ts';
import type { Server } from '../../adapters/http/server.ts';
import { sendsFiles } from '../../adapters/http/static-files.ts';
import { type OpenStreams, StreamAdmission } from '../../adapters/http/streams.ts';
import { applyStrictScopes } from '../../adapters/http/strict-scopes.ts';
import { WrongSecrets } from '../../adapters/http/wrong-secrets.ts';
import { agentVersionRoutes } from '../../core/agents/agent-versions.routes.ts';
import { agentRoutes } from '../../core/agents/agents.routes.ts';
import { Admission } from '../../core/api-keys/admission.ts';
import { apiKeyRoutes } from '../../core/api-keys/api-keys.routes.ts';
import { conversationRoutes } from '../../core/conversations/conversations.routes.ts';
import { credentialRoutes } from '../../core/credentials/credentials.routes.ts';
import { fileRoutes } from '../../core/files/files.routes.ts';
import { batchRoutes } from '../../core/jobs/batches/batches.routes.ts';
import { executionRoutes } from '../../core/jobs/execution.routes.ts';
import { agentQueueRoutes, gateAdminRoutes } from '../../core/jobs/gates/gates.routes.ts';
import { forkRoutes } from '../../core/jobs/in-conversation/forks.routes.ts';
import { jobRoutes } from '../../core/jobs/jobs.routes.ts';
import { manyJobsRoutes } from '../../core/jobs/many-jobs/many-jobs.routes.ts';
import { promptRoutes } from '../../core/jobs/prompts/prompts.routes.ts';
import { endJobsOfKey } from '../../core/jobs/revoked-key.ts';
import { taskRoutes } from '../../core/jobs/tasks.routes.ts';
import { trialRoutes } from '../../core/jobs/trials.routes.ts';
import { weightRoutes } from '../../core/jobs/turns/weights.routes.ts';
import { promptSettingsRoutes } from '../../core/journal/prompts/prompt-settings.routes.ts';
import { memoryRoutes } from '../../core/memories/memories.routes.ts';
import { profileRoutes } from '../../core/memories/profiles.routes.ts';
import { Profiles } from '../../core/memories/profiles.ts';
import { reservedCategories } from '../../core/skills/field-checks.ts';
import { SkillsDocument } from '../../core/skills/openapi/skills-document.ts';
import { skillSettingsRoutes } from '../../core/skills/settings.routes.ts';
import { skillAdminRoutes, skillRoutes } from '../../core/skills/skills.routes.ts';
import { usageAdminRoutes, usageRoutes } from '../../core/usage/usage.routes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { PlatformError } from '../../kernel/errors.ts';
import { approvalRoutes } from '../../platform/approvals/approvals.routes.ts';
import { processAdminRoutes } from '../../platform/processes/processes.routes.ts';
import { queueAdminRoutes, queueRoutes } from '../../platform/queues/queues.routes.ts';
import { reloadRoutes } from '../../platform/reloads/reload.routes.ts';
import type { Reloads } from '../../platform/reloads/reload-turns.ts';
import {
  accountAdminRoutes,
  accountRoutes,
  clientMetadataRoutes,
} from '../../platform/remote-skills/accounts/accounts.routes.ts';
import { BrowserAddress } from '../../platform/remote-skills/accounts/browser-address.ts';
import { mcpServerRoutes } from '../../platform/remote-skills/mcp/mcp-servers.routes.ts';
import { openapiImportRoutes } from '../../platform/remote-skills/openapi/openapi-imports.routes.ts';
import { runEventRoutes } from '../../platform/run-events/run-events.routes.ts';
import { scheduledJobRoutes } from '../../platform/schedules/schedules.routes.ts';
import { statisticsRoutes } from '../../platform/statistics/statistics.routes.ts';
import { triggerRoutes } from '../../platform/triggers/triggers.routes.ts';
import { webhookTriggerRoutes } from '../../platform/triggers/webhook-trigger.routes.ts';
import { userDataRoutes } from '../../platform/user-data/user-data.routes.ts';
import { deliveryRoutes } from '../../platform/webhooks/deliveries.routes.ts';
import { listenRoutes } from '../../platform/webhooks/listen.routes.ts';
import { webhookRoutes } from '../../platform/webhooks/webhooks.routes.ts';
import { consoleRoutes } from '../console/console.routes.ts';
import { Sessions } from '../console/sessions.ts';
import type { GaugeReader } from './gauges.ts';
import { registerMcp } from './mcp.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

const noSessions = { credentials: async () => null };

/** What the routes of a server serve. */
export interface Routed {
  readonly parts: Parts;
  readonly slices: Slices;
  readonly clock: Clock;
  /** The state of the whole process. */
  readonly state: {
    readonly reloads: Reloads;
    readonly health: Health;
    readonly gauges: GaugeReader;
    /** Aborts when the platform stops. */
    readonly stopping: AbortSignal;
  };
  /** Made of the server, or for it. */
  readonly http: {
    readonly limiter: RateLimiter;
    readonly streams: OpenStreams;
    /** The OpenAPI document, made of these routes. */
    readonly document: () => Promise<ApiDocument>;
    readonly unmatched: (method: string, url: string) => PlatformError;
  };
}

export function registerRoutes(target: Server, routed: Routed): void {
  const { parts, slices, clock, state } = routed;
  const { limiter, streams, document, unmatched } = routed.http;
  const { config, version, adminSecret, consoleFiles, log } = parts;
  const { metrics, apiKeys, triggers } = slices;
  healthRoutes(target, { health: state.health, version });
  metricsRoutes(target, metrics, () => state.gauges.read());
  if (!config.roles.has('api')) return;
  docsRoutes(target);
  sendsFiles(target);
  guideRoutes(target, { folder: parts.guideFolder ?? builtGuide });
  const sessions = new Sessions(slices.context, apiKeys, adminSecret);
  const wrongSecrets = new WrongSecrets(clock, log);
  if (consoleFiles) {
    consoleRoutes(target, { files: consoleFiles, sessions, wrongSecrets, streams });
  }
  const isAdministrator = (request: FastifyRequest) => sessions.isAdministrator(request);
  const secretHook = adminHook(adminSecret, isAdministrator, wrongSecrets);
  guarded(target, '/admin', secretHook, unmatched, (scope) => adminRoutes(scope, routed));
  clientMetadataRoutes(target, slices.remoteSkills.accounts);
  const { triggerReceiver: receiver, triggerCalls: calls } = slices;
  webhookTriggerRoutes(target, { triggers, receiver, calls, clock, limiter }, unmatched);
  const limits = {
    rate: limiter,
    ofKeys: new ConcurrencyLimit(config.requestsPerKeyMax, 'requests of one API key'),
    ofOrganizations: new ConcurrencyLimit(
      config.requestsPerOrganizationMax,
      'requests of one organization',
    ),
  };
  const admission = new Admission(apiKeys, limits, wrongSecrets, sessions);
  const withSkills = new SkillsDocument(slices.skills);
  const describe = (plain: ApiDocument, caller: Caller) => withSkills.describe(plain, caller);
  openApiRoutes(target, document, describe, admission.hook);
  guarded(target, '/api', admission.hook, unmatched, (scope) =>
    apiRoutes(scope, routed, admission),
  );
  // Sessions of the console are not admitted: browsers send them by themselves.
  const admissionOfMcp = new Admission(apiKeys, limits, wrongSecrets, noSessions, true);
  registerMcp(target, routed, admissionOfMcp);
}

function adminRoutes(scope: Server, routed: Routed): void {
  const { parts, slices, clock } = routed;
  const { apiKeys, skills, credentials, usage, budgets, jobs, processes } = slices;
  apiKeyRoutes(scope, apiKeys, clock, routed.http.streams, (id, options) =>
    endJobsOfKey(slices.context, jobs, id, options),
  );
  skillAdminRoutes(scope, skills, () => parts.executors?.leftOut ?? []);
  reloadRoutes(scope, routed.state.reloads);
  credentialRoutes(scope, { credentials });
  mcpServerRoutes(scope, slices.remoteSkills.mcpServers);
  accountAdminRoutes(scope, slices.remoteSkills.accounts);
  openapiImportRoutes(scope, slices.remoteSkills.openapiImports);
  usageAdminRoutes(scope, { usage, budgets });
  processAdminRoutes(scope, processes.local);
  queueAdminRoutes(scope, slices.queueState);
  weightRoutes(scope, slices.weights);
  promptSettingsRoutes(scope, slices.prompts);
  gateAdminRoutes(scope, jobs.queueLimits);
}

/** The routes of `/api`. A stream goes on for as long as its caller is admitted. */
function apiRoutes(scope: Server, routed: Routed, admission: Admission): void {
  const { parts, slices, clock } = routed;
  const { stopping } = routed.state;
  const { unmatched } = routed.http;
  const { agents, memories, skills, conversations } = slices;
  const { statistics, usage, budgets } = slices;
  const { jobs, execution } = slices.jobs;
  const isStrict = parts.config.apiKeyPermissions === 'strict';
  applyStrictScopes(scope, isStrict);
  skillRoutes(scope, skills, slices.skillSettings);
  skillSettingsRoutes(scope, skills, slices.skillSettings);
  accountRoutes(scope, slices.remoteSkills.accounts, new BrowserAddress(parts.config));
  agentRoutes(scope, { agents });
  agentQueueRoutes(scope, slices.jobs.queueLimits);
  agentVersionRoutes(scope, { agents, agentVersions: slices.agentVersions });
  memoryRoutes(scope, { memories, clock });
  profileRoutes(scope, new Profiles(slices.context, agents));
  conversationRoutes(scope, { conversations });
  fileRoutes(scope, slices.files);
  forkRoutes(scope, slices.jobs.forks);
  triggerRoutes(scope, slices.triggers, slices.triggerCalls, parts.config.publicUrl);
  const streams = new StreamAdmission(
    routed.http.streams,
    (request) => admission.isStillValid(request),
    stopping,
    parts.log,
  );
  const { webhooks, listeners, deliveries } = slices.webhooks;
  listenRoutes(scope, listeners, streams, isStrict);
  webhookRoutes(scope, webhooks);
  deliveryRoutes(scope, { webhooks, deliveries, isStrict });
  jobRoutes(
    scope,
    jobs,
    (organizationId, job) => originOf(slices, organizationId, job),
    streams,
    isStrict,
  );
  promptRoutes(scope, jobs);
  manyJobsRoutes(scope, jobs, routed.http.limiter);
  queueRoutes(scope, slices.queueState);
  batchRoutes(scope, slices.jobs.batches, jobs, routed.http.limiter);
  approvalRoutes(scope, { approvals: slices.approvals });
  userDataRoutes(scope, slices.userData);
  runEventRoutes(scope, slices.runEvents);
  scheduledJobRoutes(scope, slices.schedules, unmatched);
  usageRoutes(scope, { usage, budgets });
  statisticsRoutes(scope, statistics);
  taskRoutes(scope, execution, jobs, stopping);
  trialRoutes(scope, execution, jobs, stopping);
  executionRoutes(scope, execution, jobs, stopping, reservedCategories, unmatched);
}

/** The scheduled job or the trigger that started a job. */
async function originOf(
  { schedules, triggerCalls }: Slices,
  organizationId: string,
  { job_id, trigger_type }: { job_id: string; trigger_type: TriggerType },
) {
  const isScheduled = trigger_type === 'scheduled';
  const isTriggered = trigger_type === 'webhook';
  return {
    scheduled_job_id: isScheduled
      ? ((await schedules.ofJob(organizationId, job_id)) ?? null)
      : null,
    trigger_id: isTriggered ? ((await triggerCalls.triggerOf(job_id)) ?? null) : null,
  };
}
