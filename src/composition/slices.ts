/**
 * The slices, put together: here alone each gets what it needs of the others. Builds only;
 * nothing listens or runs yet. Each slice uses only slices that stand above it.
 */

import { insertDefaultAgent } from '../agents/agents.ts';
import { createApiKeys } from '../api-keys/api-keys.ts';
import { createConversations } from '../conversations/conversations.ts';
import type { ExecutorPool } from '../executors/pool.ts';
import { createMetrics } from '../http/metrics.ts';
import type { Clock } from '../kernel/clock.ts';
import { composeAgents } from './agents.ts';
import { composeApprovals } from './approvals.ts';
import { type ClusterTimes, clusterTimes } from './cluster-times.ts';
import { composeJobs } from './jobs.ts';
import type { Parts } from './parts.ts';
import { composeProcesses } from './processes.ts';
import { composeRemoteSkills, runnersOf } from './remote-skills.ts';
import { composeRunEvents } from './run-events.ts';
import { composeSchedules } from './schedules.ts';
import { composeSecrets } from './secrets.ts';
import { composeSkills } from './skills.ts';
import { composeStatistics, createDeliveryObserver, createJobObserver } from './statistics.ts';
import { composeThinking } from './thinking.ts';
import { composeTriggers } from './triggers.ts';
import { composeUsage } from './usage.ts';
import { composeWebhooks } from './webhooks.ts';

/** The verbs of all slices, in groups. */
export type Slices = Awaited<ReturnType<typeof composeSlices>>;

/** `writer` tells the counts of this process from those of others. */
export async function composeSlices(parts: Parts, clock: Clock, writer: string) {
  const { config, database, queue, executors, cluster, log } = parts;
  const base = { database, queue, clock, log, writer };
  const times: ClusterTimes = cluster === null ? {} : clusterTimes;
  const metrics = metricsOf(parts);
  const apiKeys = createApiKeys(database, clock, insertDefaultAgent, config.apiKeysMax);
  const conversations = createConversations(database);
  const bus = cluster?.bus ?? null;
  const composed = composeAgents(base, config, bus);
  const { agents, memories } = composed;
  const processes = await composeProcesses(parts, clock);
  const secrets = await composeSecrets(parts, clock, processes.cluster);
  const { credentials, signingSecrets, skillSettings } = secrets;
  const { skills, isLoaded } = await composeSkills(base, executors, processes.cluster);
  const remoteSkills = composeRemoteSkills(base, parts, skills);
  const statistics = composeStatistics(base, skills);
  const { recorder } = statistics;

  const thinking = composeThinking({
    base,
    config,
    slices: { agents, apiKeys, conversations, credentials, skills },
    definitions: () => executors?.definitions ?? [],
    metrics,
    recorder,
  });
  const jobs = composeJobs({
    base,
    config,
    slices: { agents, apiKeys, conversations, memories, skills, skillSettings, thinking },
    executors: runnersOf(executors ?? noExecutors, remoteSkills.remote, skills),
    isLoaded,
    whyWithdrawn: remoteSkills.remote.whyWithdrawn,
    bus,
    times,
    observer: createJobObserver(metrics, recorder, processes.local),
  });
  const approvals = composeApprovals(base, jobs);
  const running = { agents, apiKeys, skills, ...jobs };
  const runEvents = composeRunEvents(base, jobs);
  const schedules = composeSchedules(base, running, config.scheduledJobsMax);
  const usage = composeUsage(base, {
    agents,
    scheduledJobs: schedules.schedules,
    organizationOfKey: apiKeys.organizationOf,
  });
  const receiving = { ...running, runEvents, secrets: signingSecrets };
  const triggers = composeTriggers(base, receiving, config.triggersMax);
  const webhooks = composeWebhooks({
    base,
    config,
    agents,
    secrets: signingSecrets,
    egress: parts.webhookEgress,
    times,
    observe: createDeliveryObserver(metrics),
  });
  return {
    metrics,
    processes,
    apiKeys,
    ...composed,
    userData: { database, clock, log, writer, memories },
    conversations,
    skills,
    ...{ credentials, signingSecrets, skillSettings },
    remoteSkills,
    statistics,
    jobs,
    approvals,
    runEvents,
    schedules,
    usage,
    triggers,
    webhooks,
  };
}

function metricsOf({ version, config }: Parts) {
  return createMetrics({ version, roles: [...config.roles].sort().join(',') });
}

/** Used in a process that takes no jobs, and so never runs any. */
const noExecutors: Pick<ExecutorPool, 'run'> = {
  run() {
    throw new Error('This process runs no skills: its ROLES have no worker');
  },
};
