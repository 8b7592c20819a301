/**
 * The families of `/metrics`: the eleven of the specification, and further ones about model calls and for
 * operators. Label values are bounded: route patterns, queue names, codes of the error table.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export type MetricFamilies = ReturnType<typeof createFamilies>;

/** Registers all families. */
export function createFamilies(registry: Registry) {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter<L>({ name, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge<L>({ name, help, labelNames, registers });
  const histogram = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Histogram<L>({ name, help, labelNames, buckets: seconds, registers });
  const httpLabels = ['method', 'path', 'status'] as const;
  const backlogHelp =
    'Webhook deliveries that are due and not under way; 10000 stands for more, too';
  const awaitingHelp = 'Memories without a vector of EMBEDDING_MODEL; 10000 stands for more, too';
  const writableHelp = '0 after the database refused a write, until it takes one';
  const deathsHelp = 'Child processes that were lost to a fault of what ran in them';
  const outboxHelp = 'How long the oldest event that is not dispatched to webhooks has waited';
  const errorsHelp = 'Errors by code: refused requests and failed attempts';
  const requestHelp = 'Time from the request to the end of its answer';
  const loopHelp = 'Delay of the event loop since the last scrape, 99th percentile';
  const oldestHelp = 'How long the longest waiting job that is due has waited';
  return {
    httpRequests: counter('service_http_requests_total', 'HTTP requests answered', ...httpLabels),
    httpDuration: histogram('service_http_request_duration_seconds', requestHelp),
    queueDepth: gauge('service_queue_depth', 'Jobs waiting', 'queue'),
    activeJobs: gauge('service_active_jobs', 'Jobs being processed', 'queue'),
    waitingJobs: gauge(
      'service_waiting_jobs',
      'Jobs that wait for a moment, an event, a person or another job',
      'queue',
    ),
    completedJobs: counter('service_completed_jobs_total', 'Jobs completed', 'queue'),
    failedJobs: counter('service_failed_jobs_total', 'Jobs failed for good', 'queue'),
    errors: counter('service_errors_total', errorsHelp, 'type'),
    jobDuration: histogram('service_job_duration_seconds', 'Time that attempts took', 'queue'),
    poolActive: gauge('service_database_pool_active', 'Database connections in use'),
    poolIdle: gauge('service_database_pool_idle', 'Database connections at rest'),
    databaseWritable: gauge('service_database_writable', writableHelp),
    queueConnected: gauge('service_redis_connected', '1 while the queue store can be reached'),
    ...modelCounters(registers),
    modelDuration: histogram(
      'service_model_call_duration_seconds',
      'Time that calls of models took',
    ),
    oldestDue: gauge('service_oldest_due_job_age_seconds', oldestHelp, 'queue'),
    leaseExpiries: counter(
      'service_lease_expiries_total',
      'Attempts that were lost with the process that ran them',
    ),
    outboxLag: gauge('service_outbox_lag_seconds', outboxHelp),
    webhookBacklog: gauge('service_webhook_backlog', backlogHelp),
    awaitingVectors: gauge('service_memories_awaiting_vector', awaitingHelp),
    executorDeaths: counter('service_executor_deaths_total', deathsHelp),
    loopLag: gauge('service_event_loop_lag_seconds', loopHelp),
    liveProcesses: gauge(
      'service_live_processes',
      'Processes with a heartbeat within the last 15 seconds',
      'role',
    ),
    processInfo: gauge(
      'service_process_info',
      'What this process is; always 1',
      'version',
      'roles',
    ),
  };
}

function modelCounters(registers: Registry[]) {
  const count = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter<L>({ name, help, labelNames, registers });
  return {
    modelCalls: count('service_model_calls_total', 'Calls of models by how they ended', 'outcome'),
    modelTokens: count(
      'service_model_tokens_total',
      'Tokens that providers of models reported',
      'type',
    ),
    modelCost: count(
      'service_model_cost_usd_total',
      'US dollars for the tokens that providers of models reported, where their price is known',
    ),
    embeddingCalls: count(
      'service_embedding_calls_total',
      'Requests for vectors of questions and of memories by how they ended',
      'purpose',
      'outcome',
    ),
    unpricedCalls: count(
      'service_model_unpriced_calls_total',
      'Calls of models whose cost is not known, because nothing was reported or the model has no price',
    ),
  };
}
