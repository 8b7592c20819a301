/**
 * `/metrics` (specification: Health and metrics): the eleven families of the specification, and
 * further ones about model calls and for operators, in the text format. Counters count since the start of
 * this process; gauges are read at each scrape. Label values are bounded: route patterns, queue names, codes of the error table.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type QueueName, queueNames } from '../kernel/queues.ts';
import type { SharedRead } from '../kernel/shared-read.ts';
import { refusals } from './refusals.ts';
import type { HttpObserver, Server } from './server.ts';

/**
 * The values of the gauges, read at each scrape. A value that the database does not return in time is
 * taken from the last scrape, or left out.
 */
export interface MetricsSource {
  readonly jobsByQueue: SharedRead<Record<QueueName, { waiting: number; active: number }>>;
  /** How long what is due has waited, and how much of it there is. */
  readonly waiting: SharedRead<{
    oldestDueMs: Record<QueueName, number>;
    /** Deliveries that are due and not under way; 10,000 stands for more, too. */
    webhookBacklog: number;
    outboxLagMs: number;
  }>;
  /** Processes by role. */
  liveProcesses(): Record<string, number>;
  /** Children of this process that were lost to a fault. */
  executorDeaths(): number;
  databaseConnections(): { active: number; idle: number };
  isQueueConnected(): boolean;
}

/** Interval at which the delay of the event loop is sampled. */
const loopResolutionMs = 20;

const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The outcomes of a model call. */
const callOutcomes = ['answered', 'credentials', 'unavailable', 'refused', 'aborted'] as const;

export type Metrics = ReturnType<typeof createMetrics>;

/** `self` is what this process says of itself in `service_process_info`. */
export function createMetrics(self: { version: string; roles: string }) {
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  const httpRequests = new Counter({
    name: 'service_http_requests_total',
    help: 'HTTP requests answered',
    labelNames: ['method', 'path', 'status'],
    registers,
  });
  const httpDuration = new Histogram({
    name: 'service_http_request_duration_seconds',
    help: 'Time from the request to the end of its answer',
    buckets: seconds,
    registers,
  });
  const queueDepth = new Gauge({
    name: 'service_queue_depth',
    help: 'Jobs waiting',
    labelNames: ['queue'],
    registers,
  });
  const activeJobs = new Gauge({
    name: 'service_active_jobs',
    help: 'Jobs being processed',
    labelNames: ['queue'],
    registers,
  });
  const completedJobs = new Counter({
    name: 'service_completed_jobs_total',
    help: 'Jobs completed',
    labelNames: ['queue'],
    registers,
  });
  const failedJobs = new Counter({
    name: 'service_failed_jobs_total',
    help: 'Jobs failed for good',
    labelNames: ['queue'],
    registers,
  });
  const errors = new Counter({
    name: 'service_errors_total',
    help: 'Errors by code: refused requests and failed attempts',
    labelNames: ['type'],
    registers,
  });
  const jobDuration = new Histogram({
    name: 'service_job_duration_seconds',
    help: 'Time that attempts took',
    labelNames: ['queue'],
    buckets: seconds,
    registers,
  });
  const poolActive = new Gauge({
    name: 'service_database_pool_active',
    help: 'Database connections in use',
    registers,
  });
  const poolIdle = new Gauge({
    name: 'service_database_pool_idle',
    help: 'Database connections at rest',
    registers,
  });
  const queueConnected = new Gauge({
    name: 'service_redis_connected',
    help: '1 while the queue store can be reached',
    registers,
  });
  const modelCalls = new Counter({
    name: 'service_model_calls_total',
    help: 'Calls of models by how they ended',
    labelNames: ['outcome'],
    registers,
  });
  const modelTokens = new Counter({
    name: 'service_model_tokens_total',
    help: 'Tokens that providers of models reported',
    labelNames: ['type'],
    registers,
  });
  const modelDuration = new Histogram({
    name: 'service_model_call_duration_seconds',
    help: 'Time that calls of models took',
    buckets: seconds,
    registers,
  });
  const oldestDue = new Gauge({
    name: 'service_oldest_due_job_age_seconds',
    help: 'How long the longest waiting job that is due has waited',
    labelNames: ['queue'],
    registers,
  });
  const leaseExpiries = new Counter({
    name: 'service_lease_expiries_total',
    help: 'Attempts that were lost with the process that ran them',
    registers,
  });
  const outboxLag = new Gauge({
    name: 'service_outbox_lag_seconds',
    help: 'How long the oldest event that webhooks have not heard of has waited',
    registers,
  });
  const webhookBacklog = new Gauge({
    name: 'service_webhook_backlog',
    help: 'Webhook deliveries that are due and not under way; 10000 stands for more, too',
    registers,
  });
  const executorDeaths = new Counter({
    name: 'service_executor_deaths_total',
    help: 'Child processes that were lost to a fault of what ran in them',
    registers,
  });
  const loopLag = new Gauge({
    name: 'service_event_loop_lag_seconds',
    help: 'Delay of the event loop since the last scrape, 99th percentile',
    registers,
  });
  const liveProcesses = new Gauge({
    name: 'service_live_processes',
    help: 'Processes heard of within the last 15 seconds',
    labelNames: ['role'],
    registers,
  });
  new Gauge({
    name: 'service_process_info',
    help: 'What this process is; always 1',
    labelNames: ['version', 'roles'],
    registers,
  }).set(self, 1);
  const delays = monitorEventLoopDelay({ resolution: loopResolutionMs });
  delays.enable();
  let deathsCounted = 0;
  for (const queue of queueNames) {
    completedJobs.inc({ queue }, 0);
    failedJobs.inc({ queue }, 0);
  }
  // A series that began with 1 would show no increase, so no alert would see the first call.
  for (const outcome of callOutcomes) modelCalls.inc({ outcome }, 0);
  for (const type of ['prompt', 'completion']) modelTokens.inc({ type }, 0);

  // One series for each route, method and status is looked up once, then only counted.
  const requestCounters = new Map<string, ReturnType<typeof httpRequests.labels>>();
  const http: HttpObserver = {
    answered(method, route, status, took) {
      const key = `${method} ${route} ${status}`;
      let counter = requestCounters.get(key);
      if (counter === undefined) {
        counter = httpRequests.labels(method, route, String(status));
        requestCounters.set(key, counter);
      }
      counter.inc();
      httpDuration.observe(took);
    },
    refused: (code) => errors.inc({ type: code }),
  };

  const durations = new Map(queueNames.map((queue) => [queue, jobDuration.labels(queue)]));
  const completed = new Map(queueNames.map((queue) => [queue, completedJobs.labels(queue)]));

  return {
    http,
    contentType: 'text/plain; version=0.0.4',

    /** An attempt has ended. */
    attemptEnded(queue: QueueName, tookMs: number, error: string | null): void {
      durations.get(queue)?.observe(tookMs / 1000);
      if (error !== null) errors.inc({ type: error });
    },

    /** A job has ended. */
    jobEnded(queue: QueueName, status: 'completed' | 'failed'): void {
      if (status === 'completed') completed.get(queue)?.inc();
      else failedJobs.inc({ queue });
    },

    /** Attempts were lost with their processes. */
    leasesExpired(attempts: number): void {
      leaseExpiries.inc(attempts);
    },

    /** A call of a model has ended. */
    modelCalled(call: { outcome: (typeof callOutcomes)[number]; tookMs: number }): void {
      modelCalls.inc({ outcome: call.outcome });
      modelDuration.observe(call.tookMs / 1000);
    },

    /** The tokens of a call are recorded; those that were not reported are null. */
    tokensUsed(tokens: { prompt: number | null; completion: number | null }): void {
      modelTokens.inc({ type: 'prompt' }, tokens.prompt ?? 0);
      modelTokens.inc({ type: 'completion' }, tokens.completion ?? 0);
    },

    /** The text of all families. */
    async render(source: MetricsSource): Promise<string> {
      const [byQueue, waiting] = await Promise.all([source.jobsByQueue(), source.waiting()]);
      for (const queue of queueNames) {
        if (byQueue === null) {
          queueDepth.remove({ queue });
          activeJobs.remove({ queue });
        } else {
          queueDepth.set({ queue }, byQueue[queue].waiting);
          activeJobs.set({ queue }, byQueue[queue].active);
        }
      }
      for (const queue of queueNames) {
        if (waiting === null) oldestDue.remove({ queue });
        else oldestDue.set({ queue }, waiting.oldestDueMs[queue] / 1000);
      }
      // Better than a number that is no longer true.
      outboxLag.set(waiting === null ? Number.NaN : waiting.outboxLagMs / 1000);
      webhookBacklog.set(waiting === null ? Number.NaN : waiting.webhookBacklog);
      for (const [role, count] of Object.entries(source.liveProcesses())) {
        liveProcesses.set({ role }, count);
      }
      const deaths = source.executorDeaths();
      executorDeaths.inc(deaths - deathsCounted);
      deathsCounted = deaths;
      // It measures whole periods: what lies beyond one is the delay.
      const p99 = delays.percentile(99) / 1e9 - loopResolutionMs / 1000;
      loopLag.set(delays.count === 0 ? 0 : Math.max(0, p99));
      delays.reset();
      const { active, idle } = source.databaseConnections();
      poolActive.set(active);
      poolIdle.set(idle);
      queueConnected.set(source.isQueueConnected() ? 1 : 0);
      return registry.metrics();
    },
  };
}

export function metricsRoutes(
  server: Server,
  { metrics, source }: { metrics: Metrics; source: MetricsSource },
) {
  server.get(
    '/metrics',
    {
      schema: {
        tags: ['Operations'],
        security: [],
        operationId: 'getMetrics',
        summary: 'Metrics in the Prometheus text format',
        response: {
          ...refusals(),
          200: {
            description: 'All metrics.',
            content: {
              'text/plain': {
                schema: {
                  type: 'string',
                  examples: ['service_queue_depth{queue="skill-execution"} 0\n'],
                },
              },
            },
          },
        },
      },
    },
    async (_request, reply) => {
      const text = await metrics.render(source);
      // As a buffer, so that the content type stays to the letter what the specification says.
      return reply.header('content-type', metrics.contentType).send(Buffer.from(text) as never);
    },
  );
}
