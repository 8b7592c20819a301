/**
 * The slices, put together: what each of them needs of the others is given to it here, and nowhere
 * else. Builds only; nothing listens or runs yet.
 */

import { type AgentDependents, createAgents, insertDefaultAgent } from '../agents/agents.ts';
import { createApiKeys } from '../api-keys/api-keys.ts';
import { createConversations } from '../conversations/conversations.ts';
import { createCredentials } from '../credentials/credentials.ts';
import {
  createSigningSecrets,
  opensSealedSecrets,
  type SigningSecrets,
} from '../database/signing-secrets.ts';
import type { ExecutorPool } from '../executors/pool.ts';
import { createMetrics } from '../http/metrics.ts';
import { createAccept, type LocalWorker } from '../jobs/accept.ts';
import { createAdmission } from '../jobs/admission.ts';
import { createExecute } from '../jobs/execute.ts';
import { createJobFeed, createSharedJobFeed } from '../jobs/feed.ts';
import { countUnendedOf } from '../jobs/job-lists.store.ts';
import { findOldestDueOf } from '../jobs/jobs.store.ts';
import { createJobs } from '../jobs/jobs.ts';
import { createPerformer } from '../jobs/perform.ts';
import { queueOf } from '../jobs/queues.ts';
import { createRecovery } from '../jobs/recover.ts';
import { createReports } from '../jobs/reports.ts';
import { type EndJobsOfKey, endJobsOfRevokedKey } from '../jobs/revoked-key.ts';
import { createRuns } from '../jobs/run.ts';
import { createSettle } from '../jobs/settle.ts';
import { isAgentNamed, listStartersOfSkill } from '../jobs/starters.store.ts';
import type { Clock } from '../kernel/clock.ts';
import { type Cipher, createCipher } from '../kernel/encryption.ts';
import type { QueueName } from '../kernel/queues.ts';
import { createMemories } from '../memories/memories.ts';
import { createRunMemories } from '../memories/run-memory.ts';
import { createProcesses, type Processes } from '../processes/processes.ts';
import { createSingleProcess } from '../processes/single-process.ts';
import type { Consumer } from '../queue/queue.ts';
import { createYieldSlot } from '../queue/yielding.ts';
import { scheduledRuns } from '../schedules/run-ends.ts';
import { createSchedules } from '../schedules/schedules.ts';
import { createTick } from '../schedules/tick.ts';
import { createSkillRegistry, skillKey } from '../skills/registry.ts';
import { createRecorder } from '../statistics/recorder.ts';
import { createStatistics } from '../statistics/statistics.ts';
import { createTriggerCalls } from '../triggers/calls.ts';
import { createMappings } from '../triggers/mapping.ts';
import { createReceive } from '../triggers/receive.ts';
import { createTriggers } from '../triggers/triggers.ts';
import { createBudgets } from '../usage/budgets.ts';
import { createUsage } from '../usage/usage.ts';
import { createOutgoingWebhooks } from '../webhooks/outgoing.ts';
import type { Parts } from './parts.ts';
import { composeThinking } from './thinking.ts';

/** After a key was revoked: until no process accepts jobs for it any more. */
const lateJobsMs = 2_000;
/** Longest wait between retries of one job. */
const backoffMaxMs = 60 * 60 * 1000;

/** How long the sweep leaves a due row to its first hint where processes share a queue. */
const sharedHintRetryMs = 2_000;
/** The time that workers have to renew their leases once the database is back. */
const sharedGraceMs = 3_000;
/** For the only worker that has loaded a skill to start again. */
const sharedAbsentMs = 60_000;
/** How far the clocks of two processes may differ: each measures the database's clock for itself. */
const sharedClockSkewMs = 100;

/** The verbs of all slices, each with what it needs of the others. */
export type Slices = Awaited<ReturnType<typeof composeSlices>>;

/** `writer` tells this process's counts from those of others. */
export async function composeSlices(parts: Parts, clock: Clock, writer: string) {
  const { config, database, queue, executors, cluster, log } = parts;
  const feed = cluster === null ? createJobFeed() : createSharedJobFeed(cluster.bus);
  /** In a cluster any process may take a hint, which takes a while. */
  const clusterSweep =
    cluster === null ? {} : { hintRetryMs: sharedHintRetryMs, graceMs: sharedGraceMs };
  const clockSkew = cluster === null ? {} : { clockSkewMs: sharedClockSkewMs };
  const metrics = createMetrics({
    version: parts.version,
    roles: [...config.roles].sort().join(','),
  });
  const apiKeys = createApiKeys(database, clock, insertDefaultAgent, config.apiKeysMax);
  const agentDependents: AgentDependents = {
    areThere: async (tx, organizationId, agentId) =>
      (await isAgentNamed(tx, 'scheduled_jobs', organizationId, agentId)) ||
      (await isAgentNamed(tx, 'agent_triggers', organizationId, agentId)),
    begin: (tx, organizationId, agentId) => budgets.beginAgent(tx, organizationId, agentId),
    async remove(tx, organizationId, agentId) {
      await memories.removeAll(tx, { organizationId, agentId });
      await outgoing.webhooks.removeOfAgent(tx, organizationId, agentId);
      await budgets.removeOwner(tx, { kind: 'agent', organizationId, id: agentId });
    },
  };
  const agents = createAgents(database, clock, agentDependents, config.agentsMax);
  const memories = createMemories({ database, clock, agents });
  const skills = createSkillRegistry(database, clock);
  const conversations = createConversations(database);
  const cipher = parts.encryptionKey === null ? null : createCipher(parts.encryptionKey);
  const credentials = createCredentials({ database, clock, cipher });
  const unusable = await credentials.countUnusable();
  if (unusable > 0) {
    log.warn(
      { credentials: unusable },
      'stored API keys of providers cannot be decrypted: put the encryption key back that they were stored under, or store them again',
    );
  }
  const definitions = executors?.definitions ?? [];
  const loaded = new Set(
    definitions.map(({ category, version, name }) => skillKey(category, version, name)),
  );
  const itself = {
    clock,
    roles: [...config.roles],
    version: parts.version,
    skills: [...loaded],
  };
  const capabilities = [opensSealedSecrets];
  const processes =
    cluster === null ? null : createProcesses({ database, ...itself, capabilities });
  const living = processes ?? createSingleProcess(itself);
  await processes?.beat();
  const secrets = await openSigningSecrets(parts, cipher, processes);
  if (executors === null) await skills.refresh();
  else await skills.register(definitions, processes?.skills());

  const recorder = createRecorder({ database, clock, log });
  const { journals, thinking } = composeThinking({
    config,
    log,
    database,
    clock,
    metrics,
    agents,
    apiKeys,
    conversations,
    credentials,
    skills,
    definitions,
    recorder,
  });

  /** The consumers of this process by queue, once the worker has started. */
  const workers = new Map<QueueName, Consumer>();
  const worker: LocalWorker = {
    freeSlots: (name) => workers.get(name)?.freeSlots() ?? 0,
    begin: (job) => workers.get(queueOf(job.trigger_type))?.run(job.id, () => performer.begin(job)),
    leaseMs: config.jobLeaseMs,
  };
  const accept = createAccept({
    database,
    queue,
    clock,
    writer,
    worker,
    observe: (accepted) => recorder.accepted(accepted),
  });
  const backoff = { baseMs: config.retryBackoffMs, maxMs: backoffMaxMs };
  const settle = createSettle({
    database,
    queue,
    feed,
    clock,
    backoff,
    writer,
    scheduled: scheduledRuns,
    agents,
    memories,
    journals,
    observe(job, transition, tookMs) {
      const error = 'error' in transition ? transition.error : null;
      const name = queueOf(job.trigger_type);
      metrics.attemptEnded(name, tookMs, error?.code ?? null);
      if (transition.status !== 'queued') recorder.ended(job, transition.status, tookMs);
      if (transition.status === 'completed' || transition.status === 'failed') {
        metrics.jobEnded(name, transition.status);
      }
    },
  });
  const reports = createReports({
    database,
    feed,
    clock,
    onError: (err) => log.error({ err }, 'what a run said could not be recorded'),
  });
  const admission = createAdmission({
    skills,
    apiKeys,
    clock,
    isLoaded: (skill) => loaded.has(skill),
    // Claims and settlements would wait for each other at every count that both of them change.
    writer: config.isEmbedded ? writer : `${writer}-claims`,
    leaseMs: config.jobLeaseMs,
    ...clockSkew,
    ...(cluster === null ? {} : { absentMs: sharedAbsentMs }),
  });
  const startRun = createRuns({
    executors: executors ?? noExecutors,
    skills,
    reports,
    startMemory: createRunMemories(database, clock),
    journals,
    thinking,
    yieldSlot: createYieldSlot(workers, config.modelWaitsMax),
    clock,
    log,
    mayCall: admission.mayCall,
  });
  const performer = createPerformer({
    database,
    admission,
    startRun,
    settle,
    feed,
    clock,
    log,
    leaseMs: config.jobLeaseMs,
    // SQLite has recorded the outcome of a run before another could begin.
    ...(config.isEmbedded ? {} : { yieldSlot: createYieldSlot(workers, config.workerConcurrency) }),
    onClaim: () => living.claimed(),
    onBegin: () => living.begun(),
  });
  const recovery = createRecovery({
    database,
    queue,
    settle,
    renewOwn: () => performer.renew(),
    clock,
    log,
    leaseMs: config.jobLeaseMs,
    ...clusterSweep,
    onLost: (attempts) => metrics.leasesExpired(attempts),
  });
  const stopRun = (jobId: string) => {
    performer.cancel(jobId);
    cluster?.bus.send('cancellations', jobId);
  };
  const jobs = createJobs({
    database,
    conversations,
    skills,
    agents,
    accept,
    feed,
    clock,
    writer,
    stopRun,
    scheduled: scheduledRuns,
    observeCancelled(cancelled) {
      for (const job of cancelled) recorder.ended(job, 'cancelled', 0);
    },
  });
  const endJobsOfKey: EndJobsOfKey = async (keyId, options) => {
    const end = () => endJobsOfRevokedKey({ database, clock, jobs, stopRun }, keyId, options);
    await end();
    // Another process may have accepted a job for the key that it believed for a moment longer.
    setTimeout(() => {
      end().catch((err) => log.warn({ err, api_key_id: keyId }, 'jobs of a revoked key may go on'));
    }, lateJobsMs).unref();
  };
  const statistics = createStatistics({
    database,
    clock,
    skills,
    sources: {
      unended: (...asked) => countUnendedOf(database.read, ...asked),
      oldestDue: (...asked) => findOldestDueOf(database.read, ...asked),
      scheduledJobs: (...asked) =>
        listStartersOfSkill(
          database.read,
          'scheduled_jobs',
          ['id', 'agent_id', 'cron_expression', 'enabled'],
          ...asked,
        ),
      triggers: (...asked) =>
        listStartersOfSkill(
          database.read,
          'agent_triggers',
          ['id', 'name', 'agent_id', 'active'],
          ...asked,
        ),
    },
  });
  const schedules = createSchedules({
    database,
    skills,
    agents,
    apiKeys,
    accept,
    jobs,
    clock,
    max: config.scheduledJobsMax,
    removeDependents: (tx, organizationId, id) =>
      budgets.removeOwner(tx, { kind: 'scheduled_job', organizationId, id }),
  });
  const owners = { agents, scheduledJobs: schedules, organizationOfKey: apiKeys.organizationOf };
  const usage = createUsage({ database, clock, owners });
  const budgets = createBudgets({ database, clock, owners });
  const tick = createTick({ database, skills, agents, apiKeys, accept, clock, log });
  const execute = createExecute({ database, skills, agents, conversations, accept, clock });
  const mappings = createMappings();
  const triggers = createTriggers({
    database,
    clock,
    agents,
    apiKeys,
    skills,
    mappings,
    secrets,
    max: config.triggersMax,
  });
  const triggerCalls = createTriggerCalls({ database, clock });
  const receive = createReceive({ database, clock, apiKeys, execute, mappings, secrets });

  const outgoing = createOutgoingWebhooks({
    database,
    queue,
    agents,
    clock,
    log,
    writer,
    secrets,
    delaysMs: config.webhookRetryDelays,
    timeoutMs: config.webhookTimeoutMs,
    allowCidrs: config.webhookAllowCidrs,
    egress: parts.webhookEgress,
    caps: { ofOrganization: config.webhooksMax, ofAgent: config.agentWebhooksMax },
    ...clusterSweep,
    ...clockSkew,
    observe({ status, isAccepted, tookMs }) {
      metrics.attemptEnded('webhooks', tookMs, isAccepted ? null : 'upstream_unavailable');
      if (status === 'delivered') metrics.jobEnded('webhooks', 'completed');
      if (status === 'failed') metrics.jobEnded('webhooks', 'failed');
    },
  });

  return {
    feed,
    metrics,
    processes,
    living,
    apiKeys,
    agents,
    memories,
    skills,
    conversations,
    credentials,
    workers,
    performer,
    recovery,
    jobs,
    endJobsOfKey,
    schedules,
    statistics,
    recorder,
    usage,
    budgets,
    tick,
    execute,
    mappings,
    triggers,
    triggerCalls,
    receive,
    secrets,
    outgoing,
  };
}

/** Signing secrets, with a warning about those that cannot be read, or that anyone can read. */
async function openSigningSecrets(
  { database, cluster, log }: Parts,
  cipher: Cipher | null,
  processes: Pick<Processes, 'canAll'> | null,
): Promise<SigningSecrets> {
  const canAllOpen = () => processes?.canAll(opensSealedSecrets) ?? true;
  const secrets = createSigningSecrets(database, cipher, canAllOpen);
  // In a cluster the scheduler does it, once every process can decrypt them.
  if (cluster === null) await secrets.sealStored();
  const unusable = await secrets.countUnusable();
  if (unusable > 0) {
    log.warn(
      { secrets: unusable },
      'signing secrets of webhooks and triggers cannot be decrypted: put the encryption key back that they were stored under, or set new secrets',
    );
  }
  if (cipher === null && (await secrets.areAnyPlain())) {
    log.warn(
      'signing secrets of webhooks and triggers are stored as they are, because ENCRYPTION_KEY is not set',
    );
  }
  return secrets;
}

/** Stands where a process takes no jobs, and so never runs any. */
const noExecutors: Pick<ExecutorPool, 'run'> = {
  run() {
    throw new Error('This process runs no skills: its ROLES have no worker');
  },
};
