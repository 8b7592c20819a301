/**
 * `/metrics` (specification: Health and metrics) in the text format. Counters count since the start of this
 * process; gauges are read at each scrape.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Gauge, Registry } from 'prom-client';
import { usdOf } from '../../kernel/money.ts';
import { type QueueName, queueNames } from '../../kernel/queues.ts';
import type { SharedRead } from '../../kernel/shared-read.ts';
import { createFamilies, type MetricFamilies } from './metric-families.ts';
import { refusals } from './refusals.ts';
import type { HttpObserver, Server } from './server.ts';
import { createTallies, type Tallies } from './tally.ts';

/** How many jobs of a queue wait for a slot, are active, and wait for something outside (`waiting`). */
export interface JobsOfQueue {
  waiting: number;
  active: number;
  suspended: number;
}

/**
 * The values of the gauges, read at each scrape. A value that the database does not return in time is
 * taken from the last scrape, or left out.
 */
export interface MetricsSource {
  readonly jobsByQueue: SharedRead<Record<QueueName, JobsOfQueue>>;
  /** How long what is due has waited, and how much of it there is. */
  readonly waiting: SharedRead<{
    oldestDueMs: Record<QueueName, number>;
    /** Deliveries that are due and not under way; 10,000 stands for more, too. */
    webhookBacklog: number;
    outboxLagMs: number;
    /** Memories that have no vector of the current model; 10,000 stands for more, too. */
    awaitingVectors: number;
  }>;
  /** Processes by role. */
  liveProcesses(): Record<string, number>;
  /** Children of this process that were lost to a fault. */
  executorDeaths(): number;
  databaseConnections(): { active: number; idle: number };
  /** False after a refused write, until one succeeds. */
  isDatabaseWritable(): boolean;
  isQueueConnected(): boolean;
}

/** Interval at which the delay of the event loop is sampled. */
const loopResolutionMs = 20;

/** `cache_read` and `cache_write` are parts of `prompt`, and `reasoning` is one of `completion`. */
const tokenTypes = ['prompt', 'completion', 'cache_read', 'cache_write', 'reasoning'];

interface UsedTokens {
  readonly prompt: number | null;
  readonly completion: number | null;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly reasoning?: number;
}

/** The outcomes of a model call. */
const callOutcomes = ['answered', 'credentials', 'unavailable', 'refused', 'aborted'] as const;
type CallOutcome = (typeof callOutcomes)[number];

export type Metrics = ReturnType<typeof createMetrics>;

type LoopDelays = ReturnType<typeof monitorEventLoopDelay>;

interface MetricsState {
  readonly registry: Registry;
  readonly families: MetricFamilies;
  readonly tallies: Tallies;
  readonly loopDelays: LoopDelays;
  /** Deaths of executors that are counted. */
  deathsCounted: number;
}

/** `self` is what this process says of itself in `service_process_info`. */
export function createMetrics(self: { version: string; roles: string }) {
  const registry = new Registry();
  const families = createFamilies(registry);
  families.processInfo.set(self, 1);
  beginSeries(families);
  const loopDelays = monitorEventLoopDelay({ resolution: loopResolutionMs });
  loopDelays.enable();
  const tallies = createTallies();
  const state: MetricsState = { registry, families, tallies, loopDelays, deathsCounted: 0 };
  const { errors, failedJobs, leaseExpiries, modelCalls, modelDuration, modelTokens } = families;
  const { jobDuration, completedJobs, modelCost, unpricedCalls, embeddingCalls } = families;
  const durations = new Map(queueNames.map((queue) => [queue, jobDuration.labels(queue)]));
  const completed = new Map(
    queueNames.map((queue) => [queue, tallies.of(completedJobs.labels(queue))]),
  );

  return {
    http: createHttpObserver(families, tallies),
    contentType: 'text/plain; version=0.0.4',

    /** An attempt has ended. */
    attemptEnded(queue: QueueName, tookMs: number, error: string | null): void {
      durations.get(queue)?.observe(tookMs / 1000);
      if (error !== null) errors.inc({ type: error });
    },

    /** A job has ended. */
    jobEnded(queue: QueueName, status: 'completed' | 'failed'): void {
      if (status === 'completed') completed.get(queue)?.();
      else failedJobs.inc({ queue });
    },

    /** Attempts were lost with their processes. */
    leasesExpired(attempts: number): void {
      leaseExpiries.inc(attempts);
    },

    /** A call of a model has ended. */
    modelCalled(call: { outcome: CallOutcome; tookMs: number }): void {
      modelCalls.inc({ outcome: call.outcome });
      modelDuration.observe(call.tookMs / 1000);
    },

    /** A request for vectors of a question or of memories has ended, or a budget had no room for it. */
    embedded(labels: { purpose: 'question' | 'memory'; outcome: CallOutcome | 'budget' }): void {
      embeddingCalls.inc(labels);
    },

    /** The tokens of a call are recorded, null where not reported, and its cost in nano-dollars, null where unknown. */
    tokensUsed(tokens: UsedTokens, cost: number | null): void {
      modelTokens.inc({ type: 'prompt' }, tokens.prompt ?? 0);
      modelTokens.inc({ type: 'completion' }, tokens.completion ?? 0);
      modelTokens.inc({ type: 'cache_read' }, tokens.cacheRead ?? 0);
      modelTokens.inc({ type: 'cache_write' }, tokens.cacheWrite ?? 0);
      modelTokens.inc({ type: 'reasoning' }, tokens.reasoning ?? 0);
      if (cost === null) unpricedCalls.inc();
      else modelCost.inc(usdOf(cost));
    },

    /** The text of all families. */
    render: (source: MetricsSource) => render(state, source),
  };
}

/** A series that began with 1 would show no increase, so no alert would see the first count. */
function beginSeries({ completedJobs, failedJobs, modelCalls, modelTokens }: MetricFamilies): void {
  for (const queue of queueNames) {
    completedJobs.inc({ queue }, 0);
    failedJobs.inc({ queue }, 0);
  }
  for (const outcome of callOutcomes) modelCalls.inc({ outcome }, 0);
  for (const type of tokenTypes) modelTokens.inc({ type }, 0);
}

/** The answers with one method, route and status. */
interface Answers {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  count(): void;
}

function createHttpObserver(
  { httpRequests, httpDuration, errors }: MetricFamilies,
  tallies: Tallies,
): HttpObserver {
  const known = new Map<string, Answers>();
  let last: Answers | undefined;
  const answersOf = (method: string, route: string, status: number): Answers => {
    const key = `${method} ${route} ${status}`;
    let answers = known.get(key);
    if (answers === undefined) {
      const count = tallies.of(httpRequests.labels(method, route, String(status)));
      answers = { method, route, status, count };
      known.set(key, answers);
    }
    return answers;
  };
  return {
    answered(method, route, status, took) {
      // Most answers are like the last one, and a comparison costs less than the text of a key.
      if (last?.method !== method || last.route !== route || last.status !== status) {
        last = answersOf(method, route, status);
      }
      last.count();
      httpDuration.observe(took);
    },
    refused: (code) => errors.inc({ type: code }),
  };
}

async function render(state: MetricsState, source: MetricsSource): Promise<string> {
  const { families, tallies } = state;
  tallies.flush();
  const [byQueue, waiting] = await Promise.all([source.jobsByQueue(), source.waiting()]);
  for (const queue of queueNames) {
    setOrRemove(families.queueDepth, queue, byQueue?.[queue].waiting);
    setOrRemove(families.activeJobs, queue, byQueue?.[queue].active);
    setOrRemove(families.waitingJobs, queue, byQueue?.[queue].suspended);
    setOrRemove(families.oldestDue, queue, waiting && waiting.oldestDueMs[queue] / 1000);
  }
  // No number is better than an outdated one.
  families.outboxLag.set(waiting === null ? Number.NaN : waiting.outboxLagMs / 1000);
  families.awaitingVectors.set(waiting === null ? Number.NaN : waiting.awaitingVectors);
  families.webhookBacklog.set(waiting === null ? Number.NaN : waiting.webhookBacklog);
  for (const [role, count] of Object.entries(source.liveProcesses())) {
    families.liveProcesses.set({ role }, count);
  }
  const deaths = source.executorDeaths();
  families.executorDeaths.inc(deaths - state.deathsCounted);
  state.deathsCounted = deaths;
  families.loopLag.set(loopLagSeconds(state.loopDelays));
  const { active, idle } = source.databaseConnections();
  families.poolActive.set(active);
  families.poolIdle.set(idle);
  families.databaseWritable.set(source.isDatabaseWritable() ? 1 : 0);
  families.queueConnected.set(source.isQueueConnected() ? 1 : 0);
  return state.registry.metrics();
}

function setOrRemove(gauge: Gauge<'queue'>, queue: QueueName, value: number | null | undefined) {
  if (value === null || value === undefined) gauge.remove({ queue });
  else gauge.set({ queue }, value);
}

/** The 99th percentile since the last call. */
function loopLagSeconds(delays: LoopDelays): number {
  // It measures whole periods: what exceeds one period is the delay.
  const p99 = delays.percentile(99) / 1e9 - loopResolutionMs / 1000;
  const lag = delays.count === 0 ? 0 : Math.max(0, p99);
  delays.reset();
  return lag;
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
