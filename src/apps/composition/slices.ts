/**
 * The slices, put together: here alone each gets what it needs of the others. Builds only;
 * nothing listens or runs yet. Each slice uses only slices that stand above it.
 */

import type { Blobs } from '../../adapters/blobs/blobs.ts';
import { DirectoryBlobs } from '../../adapters/blobs/directory-blobs.ts';
import { opensSealedSecrets } from '../../adapters/database/signing-secrets.ts';
import { Metrics } from '../../adapters/http/metrics.ts';
import { Expressions } from '../../adapters/sandbox/expressions.ts';
import { ApiKeys } from '../../core/api-keys/api-keys.ts';
import type { Config } from '../../core/config/config.ts';
import { s3SettingsOf } from '../../core/config/s3-settings.ts';
import type { Context } from '../../core/context/context.ts';
import { RunObservers } from '../../core/context/run-observer.ts';
import { Conversations } from '../../core/conversations/conversations.ts';
import type { Credentials } from '../../core/credentials/credentials.ts';
import { LoadedSkills } from '../../core/executors/loaded-skills.ts';
import type { ExecutorPool, RunStarter } from '../../core/executors/pool.ts';
import { Files } from '../../core/files/files.ts';
import { type JobQueue, jobQueues } from '../../core/jobs/queues.ts';
import { Turns } from '../../core/jobs/turns/turns.ts';
import { Weights } from '../../core/jobs/turns/weights.ts';
import { PromptSettings } from '../../core/journal/prompts/prompt-settings.ts';
import { ProviderPaces } from '../../core/paces/provider-paces.ts';
import { SkillRegistry } from '../../core/skills/registry.ts';
import { Budgets } from '../../core/usage/budgets.ts';
import { UsageLedger } from '../../core/usage/usage.ts';
import type { Clock } from '../../kernel/clock.ts';
import { Approvals } from '../../platform/approvals/approvals.ts';
import { MemoryFormations } from '../../platform/memory-formation/formations.ts';
import { Processes } from '../../platform/processes/processes.ts';
import { ThisProcess } from '../../platform/processes/this-process.ts';
import { QueueState } from '../../platform/queues/queue-state.ts';
import { RunEvents } from '../../platform/run-events/run-events.ts';
import { Schedules } from '../../platform/schedules/schedules.ts';
import { Tick } from '../../platform/schedules/tick.ts';
import { Recorder } from '../../platform/statistics/recorder.ts';
import { Statistics } from '../../platform/statistics/statistics.ts';
import { TriggerCalls } from '../../platform/triggers/calls.ts';
import { TriggerReceiver } from '../../platform/triggers/receive.ts';
import { Triggers } from '../../platform/triggers/triggers.ts';
import { UserData } from '../../platform/user-data/user-data.ts';
import { composeAgents } from './agents.ts';
import { type ClusterTimes, clusterTimes } from './cluster-times.ts';
import { composeJobs } from './jobs.ts';
import type { Parts } from './parts.ts';
import { composeRemoteSkills, runnersOf } from './remote-skills.ts';
import { composeSecrets } from './secrets.ts';
import { createDeliveryObserver, RunMetrics } from './statistics.ts';
import { composeThinking } from './thinking.ts';
import { composeWebhooks } from './webhooks.ts';

/** The verbs of all slices, in groups. */
export type Slices = Awaited<ReturnType<typeof composeSlices>>;

/** `writer` tells the counts of this process from those of others. */
export async function composeSlices(parts: Parts, clock: Clock, writer: string) {
  const { config, database, queue, executors, cluster, log } = parts;
  const base: Context = {
    config,
    database,
    clock,
    queue,
    bus: cluster?.bus ?? null,
    log,
    writer,
    observers: new RunObservers(),
  };
  const times: ClusterTimes = cluster === null ? {} : clusterTimes;
  const prompts = new PromptSettings(base);
  await prompts.refresh();
  const weights = new Weights(base);
  await weights.refresh();
  const used = await composeUsed(parts, base, weights.byOrganization);
  const { agents, apiKeys, skills, metrics, remoteSkills, signingSecrets, turns } = used;
  base.observers.add(used.processes.local, used.recorder, new RunMetrics(metrics));
  const thinking = composeThinking(
    base,
    { ...used, prompts },
    () => executors?.definitions ?? [],
    metrics,
  );
  const jobs = composeJobs(
    base,
    { ...used, thinking },
    {
      executors: runnersOf(executors ?? noExecutors, remoteSkills.remote, skills),
      loadedSkills: used.loadedSkills,
      pool: executors,
      turns,
    },
    times,
  );
  await agents.limits.refresh();
  const running = { agents, apiKeys, skills, ...jobs };
  const mappings = used.expressions;
  const runEvents = new RunEvents(base, jobs.waitEnds);
  const schedules = new Schedules(base, running);
  return {
    ...used,
    context: base,
    userData: new UserData(base, { ...used, jobs: jobs.jobs }),
    jobs,
    weights,
    prompts,
    queueState: new QueueState(base, {
      processes: used.processes.local,
      skills,
      weights,
      settings: agents.limits,
    }),
    approvals: new Approvals(base, jobs.waitEnds),
    runEvents,
    schedules,
    tick: new Tick(base, running),
    memoryFormations: new MemoryFormations(base, running),
    usage: new UsageLedger(base),
    budgets: new Budgets(base, { agents, apiKeys, scheduledJobs: schedules }),
    mappings,
    triggers: new Triggers(base, { ...running, mappings, secrets: signingSecrets }),
    triggerReceiver: new TriggerReceiver(base, {
      ...running,
      mappings,
      runEvents,
      secrets: signingSecrets,
    }),
    triggerCalls: new TriggerCalls(base),
    webhooks: composeWebhooks(
      base,
      { agents, secrets: signingSecrets, jobs: jobs.jobs },
      { times, egress: parts.webhookEgress, observe: createDeliveryObserver(metrics) },
    ),
  };
}

/** The slices that jobs use. */
async function composeUsed(parts: Parts, base: Context, weights: ReadonlyMap<string, number>) {
  const { config, executors } = parts;
  const turns = new Map(
    jobQueues.map((name) => [name, new Turns(config.workerConcurrency, weights)]),
  );
  const paces = new ProviderPaces(base, weights);
  const processes = await composeProcesses(parts, base, turns);
  const secrets = await composeSecrets(base, parts.encryptionKey, processes.cluster);
  const { skills, loadedSkills } = await composeSkills(base, executors, processes.cluster);
  const metrics = metricsOf(parts);
  const embeddings = await loadEmbeddings(base, secrets.credentials, paces, metrics);
  const meaning = () => embeddings?.meaning ?? null;
  const blobs = await openBlobs(config);
  const files = new Files(base, blobs);
  const expressions = new Expressions();
  const ofAgents = composeAgents(base, { skills, meaning, expressions });
  return {
    turns,
    paces,
    metrics,
    expressions,
    embeddings,
    processes,
    apiKeys: new ApiKeys(base, ofAgents.agents),
    ...ofAgents,
    conversations: new Conversations(base, files),
    blobs,
    files,
    ...secrets,
    skills,
    loadedSkills,
    remoteSkills: composeRemoteSkills(base, parts, skills),
    statistics: new Statistics(base, skills),
    recorder: new Recorder(base),
  };
}

/** Null in a cluster without `FILES_S3_URL`: its processes share no directory. */
async function openBlobs(config: Config): Promise<Blobs | null> {
  const s3 = s3SettingsOf(config);
  if (s3 !== null) {
    const { S3Blobs } = await import('../../adapters/blobs/s3-blobs.ts');
    return new S3Blobs(s3, config.filesSpoolDir);
  }
  return config.isClustered ? null : new DirectoryBlobs(config.dataDir, config.isEmbedded);
}

/** Null without `EMBEDDING_MODEL`: then nothing of them is loaded. */
async function loadEmbeddings(
  context: Context,
  credentials: Credentials,
  paces: ProviderPaces,
  metrics: Metrics,
) {
  const { embeddingModel: model } = context.config;
  if (model === null) return null;
  const { composeEmbeddings } = await import('./embeddings.ts');
  return composeEmbeddings(context, model, { credentials, paces }, metrics);
}

function metricsOf({ version, config }: Parts) {
  return new Metrics({ version, roles: [...config.roles].sort().join(',') });
}

/** Used in a process that takes no jobs, and so never runs any. */
const noExecutors: RunStarter = {
  run() {
    throw new Error('This process runs no skills: its ROLES have no worker');
  },
};

/** The registry of skills, with those that the executors of this process have loaded. */
async function composeSkills(
  context: Context,
  executors: ExecutorPool | null,
  processes: Processes | null,
) {
  const skills = new SkillRegistry(context);
  if (executors === null) await skills.refresh();
  else await skills.register(executors.definitions, processes?.skills());
  return { skills, loadedSkills: new LoadedSkills(executors, skills) };
}

export interface ComposedProcesses {
  /** Null where the platform is embedded. */
  readonly cluster: Processes | null;
  readonly local: ThisProcess;
}

/** Records the first heartbeat. */
async function composeProcesses(
  { config, version, executors, cluster }: Parts,
  context: Context,
  turns: ReadonlyMap<JobQueue, Turns>,
): Promise<ComposedProcesses> {
  const facts = { roles: [...config.roles], version, executors, turns };
  if (cluster === null) return { cluster: null, local: new ThisProcess(context.clock, facts) };
  const processes = new Processes(context, facts, [opensSealedSecrets]);
  await processes.beat();
  return { cluster: processes, local: processes };
}
