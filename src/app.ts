/**
 * The composition root: builds the platform from its parts, starts it, stops it in the mirrored
 * order. Nothing else in the program knows all parts. Tests start it through the same door.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { agentRoutes } from './agents/agents.routes.ts';
import { createAgents, insertDefaultAgent } from './agents/agents.ts';
import { apiKeyRoutes } from './api-keys/api-keys.routes.ts';
import { createApiKeys } from './api-keys/api-keys.ts';
import type { Config } from './config.ts';
import { conversationRoutes } from './conversations/conversations.routes.ts';
import { createConversations } from './conversations/conversations.ts';
import type { Database } from './database/database.ts';
import type { ExecutorPool } from './executors/pool.ts';
import { adminHook, apiKeyHook } from './http/authenticate.ts';
import { docsRoutes } from './http/docs.ts';
import { prepareDrain } from './http/drain.ts';
import { guarded, refuseUnknown } from './http/guarded.ts';
import { healthRoutes, startHealth } from './http/health.ts';
import { createMetrics, type MetricsSource, metricsRoutes } from './http/metrics.ts';
import { createOpenApi, openApiRoutes } from './http/openapi.ts';
import { createMemoryRateLimiter, type RateLimiter } from './http/rate-limit.ts';
import { rememberRoutes } from './http/routes-known.ts';
import { createServer, type Server } from './http/server.ts';
import { createAccept, type LocalWorker, queueOf } from './jobs/accept.ts';
import { createExecute } from './jobs/execute.ts';
import { executionRoutes } from './jobs/execution.routes.ts';
import { createJobFeed } from './jobs/feed.ts';
import { countByStatus } from './jobs/job-lists.store.ts';
import { jobRoutes } from './jobs/jobs.routes.ts';
import { createJobs } from './jobs/jobs.ts';
import { createPerformer } from './jobs/perform.ts';
import { createRecovery, jobQueues } from './jobs/recover.ts';
import { createReports } from './jobs/reports.ts';
import { deleteExpired } from './jobs/retention.ts';
import { createSettle } from './jobs/settle.ts';
import { beginning, jobStream } from './jobs/stream.ts';
import { hasScopes } from './kernel/caller.ts';
import { type Clock, systemClock } from './kernel/clock.ts';
import type { Logger } from './kernel/log.ts';
import { type QueueName, queueNames } from './kernel/queues.ts';
import { repeat } from './kernel/repeat.ts';
import { memoryRoutes } from './memories/memories.routes.ts';
import { createMemories } from './memories/memories.ts';
import { createRunMemories } from './memories/run-memory.ts';
import type { Consumer, Queue } from './queue/queue.ts';
import { deleteExpiredRuns } from './schedules/retention.ts';
import { scheduledRuns } from './schedules/run-ends.ts';
import { scheduledJobRoutes } from './schedules/schedules.routes.ts';
import { isAgentScheduled } from './schedules/schedules.store.ts';
import { createSchedules } from './schedules/schedules.ts';
import { createTick } from './schedules/tick.ts';
import { createSkillRegistry } from './skills/registry.ts';
import { skillAdminRoutes, skillRoutes } from './skills/skills.routes.ts';
import { reservedCategories } from './skills/sources/skill-shape.ts';
import { createMappings } from './triggers/mapping.ts';
import { createReceive } from './triggers/receive.ts';
import { triggerRoutes } from './triggers/triggers.routes.ts';
import { isAgentTriggered } from './triggers/triggers.store.ts';
import { createTriggers } from './triggers/triggers.ts';
import { webhookTriggerRoutes } from './triggers/webhook-trigger.routes.ts';
import { countDeliveries } from './webhooks/delivery-log.store.ts';
import { createOutgoingWebhooks, type WebhookEgress } from './webhooks/outgoing.ts';
import { webhookRoutes } from './webhooks/webhooks.routes.ts';

const sweepEveryMs = 1_000;
const tickEveryMs = 250;
/** Between two looks at the outbox: most of what an event waits for its webhooks. */
const dispatchEveryMs = 100;
/** Hints that are looked up at a time; what is sent at a time is the deliverer's own business. */
const deliveriesLookedUp = 1_000;
const retentionEveryMs = 60 * 60 * 1000;
/** Between two looks for memories of deleted agents. */
const purgeEveryMs = 10_000;
/** Longest wait between retries of one job. */
const backoffMaxMs = 60 * 60 * 1000;
/** After the runs' grace: for those that were told to stop, before they are killed. */
const abortedRunsMs = 1_000;
/** For what is still to be recorded then. */
const lastWritesMs = 2_000;

/** What the platform stands on; chosen by the configuration, or by a test. */
export interface Parts {
  readonly config: Config;
  readonly version: string;
  readonly adminSecret: string;
  readonly database: Database;
  readonly queue: Queue;
  readonly executors: ExecutorPool;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly limiter?: RateLimiter;
  readonly webhookEgress?: WebhookEgress;
}

export interface App {
  readonly server: Server;
  /** Where it listens: `http://127.0.0.1:3000`. */
  readonly address: string;
  /** Stops taking work, lets runs finish within their grace, hands back the others, closes everything. */
  stop(): Promise<void>;
}

export async function startApp(parts: Parts): Promise<App> {
  const { config, version, database, queue, executors, log, clock = systemClock } = parts;
  const limiter = parts.limiter ?? createMemoryRateLimiter(clock);
  // One process writes to an embedded database; in a shared one each has counts of its own.
  const writer = config.isEmbedded ? 'embedded' : `${process.pid}-${clock.now().toString(36)}`;

  const feed = createJobFeed();
  const metrics = createMetrics();
  const apiKeys = createApiKeys(database, clock, insertDefaultAgent);
  const agents = createAgents(database, clock, {
    areThere: async (tx, organizationId, agentId) =>
      (await isAgentScheduled(tx, organizationId, agentId)) ||
      (await isAgentTriggered(tx, organizationId, agentId)),
    async remove(tx, organizationId, agentId) {
      await memories.removeAll(tx, { organizationId, agentId });
      await outgoing.webhooks.removeOfAgent(tx, organizationId, agentId);
    },
  });
  const memories = createMemories({ database, clock, agents });
  const skills = createSkillRegistry(database, clock);
  const conversations = createConversations(database);
  await skills.register(executors.definitions);

  /** Whoever runs the jobs of a queue here, once the platform takes work. */
  const workers = new Map<QueueName, Consumer>();
  const worker: LocalWorker = {
    places: (name) => workers.get(name)?.places() ?? 0,
    begin: (job) => workers.get(queueOf(job.trigger_type))?.run(job.id, () => performer.begin(job)),
    leaseMs: config.jobLeaseMs,
  };
  const accept = createAccept({ database, queue, feed, clock, writer, worker });
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
    observe(job, verdict, tookMs) {
      const error = 'error' in verdict ? verdict.error : null;
      const name = queueOf(job.trigger_type);
      metrics.attemptEnded(name, tookMs, error?.code ?? null);
      if (verdict.status === 'completed' || verdict.status === 'failed') {
        metrics.jobEnded(name, verdict.status);
      }
    },
  });
  const reports = createReports({
    database,
    feed,
    clock,
    onError: (err) => log.error({ err }, 'what a run said could not be recorded'),
  });
  const performer = createPerformer({
    database,
    executors,
    skills,
    settle,
    reports,
    feed,
    clock,
    log,
    leaseMs: config.jobLeaseMs,
    writer,
    startMemory: createRunMemories(database, clock),
    async mayCall(job, name) {
      const [category = '', version = '', skillName = ''] = name.split('/');
      const skill = skills.findActive(category, version, skillName);
      const caller = await apiKeys.callerById(job.api_key_id);
      return (
        skill !== undefined &&
        caller !== undefined &&
        hasScopes(caller.scopes, skill.requiredScopes)
      );
    },
  });
  const recovery = createRecovery({
    database,
    queue,
    settle,
    renewOwn: () => performer.renew(),
    clock,
    log,
  });
  const jobs = createJobs({
    database,
    conversations,
    skills,
    agents,
    accept,
    feed,
    clock,
    writer,
    stopRun: (jobId) => performer.cancel(jobId),
    scheduled: scheduledRuns,
  });
  const schedules = createSchedules({ database, skills, agents, accept, jobs, clock });
  const tick = createTick({ database, skills, agents, apiKeys, accept, clock, log });
  const execute = createExecute({ database, skills, agents, accept, clock });
  const mappings = createMappings();
  const triggers = createTriggers({ database, clock, agents, skills, mappings });
  const receive = createReceive({ database, clock, apiKeys, execute, mappings });

  const outgoing = createOutgoingWebhooks({
    database,
    queue,
    agents,
    clock,
    log,
    writer,
    delaysMs: config.webhookRetryDelays,
    timeoutMs: config.webhookTimeoutMs,
    allowCidrs: config.webhookAllowCidrs,
    egress: parts.webhookEgress,
    observe({ status, isTaken, tookMs }) {
      metrics.attemptEnded('webhooks', tookMs, isTaken ? null : 'upstream_unavailable');
      if (status === 'delivered') metrics.jobEnded('webhooks', 'completed');
      if (status === 'failed') metrics.jobEnded('webhooks', 'failed');
    },
  });

  const health = startHealth(
    [
      { name: 'database', isCritical: true, check: () => database.ping() },
      { name: 'queue', isCritical: true, check: async () => assertTrue(queue.isConnected()) },
      {
        name: 'executors',
        isCritical: false,
        check: async () => assertTrue(executors.stats().executors > 0),
      },
    ],
    clock,
  );

  const stopping = new AbortController();
  const server = createServer(log, metrics.http);
  const drain = prepareDrain(server);
  const unmatched = rememberRoutes(server, reservedCategories);
  const source = metricsSource(parts);

  /** All routes; called again on a server that never listens, to document them. */
  const routes = (target: Server): void => {
    healthRoutes(target, { health, version });
    metricsRoutes(target, { metrics, source });
    openApiRoutes(target, { document });
    docsRoutes(target);
    guarded(target, '/admin', adminHook(parts.adminSecret), unmatched, (scope) => {
      apiKeyRoutes(scope, { apiKeys, clock });
      skillAdminRoutes(scope, { skills });
    });
    webhookTriggerRoutes(target, { triggers, receive, limiter, unmatched });
    guarded(target, '/api', apiKeyHook(apiKeys.verify, limiter), unmatched, (scope) => {
      skillRoutes(scope, { skills });
      agentRoutes(scope, { agents });
      memoryRoutes(scope, { memories });
      conversationRoutes(scope, { conversations });
      triggerRoutes(scope, { triggers });
      webhookRoutes(scope, outgoing);
      jobRoutes(scope, {
        jobs,
        stopping: stopping.signal,
        openStream: (organizationId, jobId, after, signal) =>
          jobStream({ database, feed }, organizationId, jobId, after ?? beginning, signal),
      });
      scheduledJobRoutes(scope, { schedules });
      executionRoutes(scope, {
        execute,
        jobs,
        reserved: reservedCategories,
        unmatched,
        stopping: stopping.signal,
      });
    });
  };
  const document = createOpenApi(version, routes);
  routes(server);
  refuseUnknown(server, unmatched);

  // The database of this process alone: whatever is active in it, nobody runs any more.
  if (config.isEmbedded) {
    await recovery.endOrphans();
    await outgoing.recovery.endOrphans();
  }
  // Listening first: a port that is taken ends the start before any work was begun.
  const address = await listen(server, config);
  for (const name of jobQueues) {
    workers.set(
      name,
      queue.consume(name, config.workerConcurrency, (id) => performer.perform(id)),
    );
  }
  const consumers = [
    ...workers.values(),
    queue.consume('webhooks', deliveriesLookedUp, (id) => outgoing.deliverer.take(id)),
    outgoing.deliverer,
  ];
  const onTaskError = (err: unknown) =>
    log.error({ err }, 'a background task failed; it will be tried again');
  const background = (everyMs: number, task: () => Promise<unknown>) =>
    repeat(everyMs, task, onTaskError);
  const tasks = [
    background(sweepEveryMs, () => recovery.sweep()),
    background(config.jobLeaseMs / 3, () => performer.renew()),
    background(purgeEveryMs, () => memories.purge()),
    background(tickEveryMs, tick),
    background(dispatchEveryMs, () => outgoing.dispatcher.dispatch()),
    background(sweepEveryMs, () => outgoing.recovery.sweep()),
    background(retentionEveryMs, async () => {
      // After a long standstill, what is old may not have been read.
      await outgoing.dispatcher.dispatch();
      await deleteExpired({ database, clock, writer }, config.retentionDays);
    }),
    background(retentionEveryMs, () =>
      deleteExpiredRuns({ database, clock }, config.retentionDays),
    ),
    background(retentionEveryMs, () => outgoing.recovery.deleteExpired(config.retentionDays)),
  ];

  return {
    server,
    address,
    async stop() {
      const graceEnds = clock.monotonic() + config.shutdownGraceMs;
      const idle = Promise.all(consumers.map((consumer) => consumer.stop()));
      stopping.abort();
      await drain(config.shutdownGraceMs);
      await mappings.stop();
      await Promise.race([idle, elapsed(Math.max(0, graceEnds - clock.monotonic()))]);
      performer.handBack();
      outgoing.deliverer.breakOff();
      await executors.stop(abortedRunsMs);
      await Promise.race([idle, elapsed(lastWritesMs)]);
      await Promise.all(tasks.map((task) => task.stop()));
      await outgoing.close();
      health.stop();
      await queue.close();
      await database.close();
    },
  };
}

function metricsSource({ database, queue }: Parts): MetricsSource {
  return {
    databaseConnections: () => database.connections(),
    isQueueConnected: () => queue.isConnected(),
    async jobsByQueue() {
      const counts = Object.fromEntries(
        queueNames.map((name) => [name, { waiting: 0, active: 0 }]),
      ) as Record<QueueName, { waiting: number; active: number }>;
      for (const { trigger_type, status, n } of await countByStatus(database.read)) {
        const count = counts[queueOf(trigger_type)];
        if (status === 'queued') count.waiting += n;
        if (status === 'active') count.active += n;
      }
      for (const { status, n } of await countDeliveries(database.read)) {
        if (status === 'pending') counts.webhooks.waiting += n;
        if (status === 'delivering') counts.webhooks.active += n;
      }
      return counts;
    },
  };
}

function assertTrue(holds: boolean): void {
  if (!holds) throw new Error('The probe found it down');
}

/** Listens; whoever started the platform says where, so Fastify need not. */
async function listen(server: Server, { host, port }: Config): Promise<string> {
  const { level } = server.log;
  server.log.level = 'silent';
  try {
    return await server.listen({ host, port });
  } finally {
    server.log.level = level;
  }
}
