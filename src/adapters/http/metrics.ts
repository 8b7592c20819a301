/**
 * `/metrics` (specification: Health and metrics) in the text format. Counters count since the start of this
 * process; gauges are read at each scrape.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Gauge, Registry } from 'prom-client';
import { usdOf } from '../../kernel/money.ts';
import { type QueueName, queueNames } from '../../kernel/queues.ts';
import { HttpMetrics } from './http-metrics.ts';
import { createFamilies, type MetricFamilies } from './metric-families.ts';
import { refusals } from './refusals.ts';
import type { Server } from './server.ts';
import { Tallies, type Tally } from './tally.ts';

/** The jobs of a queue that wait for a slot, are active, and have the status `waiting`. */
export interface JobsOfQueue {
  waiting: number;
  active: number;
  suspended: number;
}

/** The values of the gauges at a scrape. Those of the database are null where it did not return them in time. */
export interface Gauges {
  readonly jobsByQueue: Record<QueueName, JobsOfQueue> | null;
  /** The age of the oldest due work, and its amount. */
  readonly waiting: {
    readonly oldestDueMs: Record<QueueName, number>;
    /** Due deliveries that are not under way; 10,000 stands for more, too. */
    readonly webhookBacklog: number;
    readonly outboxLagMs: number;
    /** Memories that have no vector of the current model; 10,000 stands for more, too. */
    readonly awaitingVectors: number;
  } | null;
  /** Processes by role. */
  readonly liveProcesses: Readonly<Record<string, number>>;
  /** Children of this process that were lost to a fault. */
  readonly executorDeaths: number;
  readonly databaseConnections: { readonly active: number; readonly idle: number };
  /** False after a refused write, until one succeeds. */
  readonly isDatabaseWritable: boolean;
  readonly isQueueConnected: boolean;
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

type LoopDelays = ReturnType<typeof monitorEventLoopDelay>;

export class Metrics {
  readonly contentType = 'text/plain; version=0.0.4';
  readonly http: HttpMetrics;
  readonly #registry = new Registry();
  readonly #families: MetricFamilies;
  readonly #tallies = new Tallies();
  readonly #loopDelays: LoopDelays;
  readonly #durations: ReadonlyMap<QueueName, ReturnType<MetricFamilies['jobDuration']['labels']>>;
  readonly #completed: ReadonlyMap<QueueName, Tally>;
  /** Deaths of executors that are counted. */
  #deathsCounted = 0;

  /** `self` are the labels of this process in `service_process_info`. */
  constructor(self: { version: string; roles: string }) {
    const families = createFamilies(this.#registry);
    families.processInfo.set(self, 1);
    beginSeries(families);
    const { jobDuration, completedJobs } = families;
    this.#families = families;
    this.http = new HttpMetrics(families, this.#tallies);
    this.#durations = new Map(queueNames.map((queue) => [queue, jobDuration.labels(queue)]));
    this.#completed = new Map(
      queueNames.map((queue) => [queue, this.#tallies.of(completedJobs.labels(queue))]),
    );
    this.#loopDelays = monitorEventLoopDelay({ resolution: loopResolutionMs });
    this.#loopDelays.enable();
  }

  /** An attempt has ended. */
  attemptEnded(queue: QueueName, tookMs: number, error: string | null): void {
    this.#durations.get(queue)?.observe(tookMs / 1000);
    if (error !== null) this.#families.errors.inc({ type: error });
  }

  /** A job has ended. */
  jobEnded(queue: QueueName, status: 'completed' | 'failed'): void {
    if (status === 'completed') this.#completed.get(queue)?.count();
    else this.#families.failedJobs.inc({ queue });
  }

  /** Attempts were lost with their processes. */
  leasesExpired(attempts: number): void {
    this.#families.leaseExpiries.inc(attempts);
  }

  /** A call of a model has ended. */
  modelCalled(call: { outcome: CallOutcome; tookMs: number }): void {
    this.#families.modelCalls.inc({ outcome: call.outcome });
    this.#families.modelDuration.observe(call.tookMs / 1000);
  }

  /** A request for vectors of a question or of memories has ended, or a budget had no room for it. */
  embedded(labels: { purpose: 'question' | 'memory'; outcome: CallOutcome | 'budget' }): void {
    this.#families.embeddingCalls.inc(labels);
  }

  /** Counts the tokens of a call, null where not reported, and its cost in nano-dollars, null where unknown. */
  tokensUsed(tokens: UsedTokens, cost: number | null): void {
    const { modelTokens, modelCost, unpricedCalls } = this.#families;
    modelTokens.inc({ type: 'prompt' }, tokens.prompt ?? 0);
    modelTokens.inc({ type: 'completion' }, tokens.completion ?? 0);
    modelTokens.inc({ type: 'cache_read' }, tokens.cacheRead ?? 0);
    modelTokens.inc({ type: 'cache_write' }, tokens.cacheWrite ?? 0);
    modelTokens.inc({ type: 'reasoning' }, tokens.reasoning ?? 0);
    if (cost === null) unpricedCalls.inc();
    else modelCost.inc(usdOf(cost));
  }

  /** The text of all families. */
  render(gauges: Gauges): Promise<string> {
    const families = this.#families;
    this.#tallies.flush();
    const { jobsByQueue: byQueue, waiting } = gauges;
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
    for (const [role, count] of Object.entries(gauges.liveProcesses)) {
      families.liveProcesses.set({ role }, count);
    }
    families.executorDeaths.inc(gauges.executorDeaths - this.#deathsCounted);
    this.#deathsCounted = gauges.executorDeaths;
    families.loopLag.set(loopLagSeconds(this.#loopDelays));
    families.poolActive.set(gauges.databaseConnections.active);
    families.poolIdle.set(gauges.databaseConnections.idle);
    families.databaseWritable.set(gauges.isDatabaseWritable ? 1 : 0);
    families.queueConnected.set(gauges.isQueueConnected ? 1 : 0);
    return this.#registry.metrics();
  }
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
  metrics: Metrics,
  readGauges: () => Promise<Gauges>,
): void {
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
      const text = await metrics.render(await readGauges());
      // As a buffer: Fastify would extend the content type of a text, which the specification sets exactly.
      return reply.header('content-type', metrics.contentType).send(Buffer.from(text) as never);
    },
  );
}
