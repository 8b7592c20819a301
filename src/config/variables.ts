/** Every environment variable of the platform, with its default and its rule: one table, in one file. */
import { readEncryptionKey } from './encryption-key.ts';
import {
  addressRanges,
  adminSecret,
  delays,
  integer,
  model,
  publicUrl,
  type Reader,
  roleList,
  text,
  url,
  word,
} from './readers.ts';

/** One environment variable: what it is for, its default as text, and how to read it. */
interface Variable<T> {
  readonly name: string;
  readonly about: string;
  readonly default: string | null;
  readonly read: Reader<T>;
}

/** Every variable, in the order in which the documentation lists them. */
export const variables = {
  port: {
    name: 'PORT',
    about: 'Port to listen on; 0 takes a free one.',
    default: '3000',
    read: integer(0, 65_535),
  },
  host: { name: 'HOST', about: 'Address to listen on.', default: '127.0.0.1', read: text },
  dataDir: {
    name: 'DATA_DIR',
    about: 'Directory of the embedded database and the generated secrets.',
    default: './data',
    read: text,
  },
  adminSecret: {
    name: 'ADMIN_SECRET',
    about:
      'Secret of the /admin endpoints, at least 16 visible ASCII characters; generated at first start when it is not set.',
    default: null,
    read: adminSecret,
  },
  encryptionKey: {
    name: 'ENCRYPTION_KEY',
    about:
      'Key for stored credentials and signing secrets: 32 bytes, hex or base64; generated at first start when neither it nor DATABASE_URL is set.',
    default: null,
    read: readEncryptionKey,
  },
  databaseUrl: {
    name: 'DATABASE_URL',
    about: 'PostgreSQL to use instead of the embedded database.',
    default: null,
    read: url('postgres', 'postgresql'),
  },
  databasePoolMax: {
    name: 'DATABASE_POOL_MAX',
    about: 'Most connections to PostgreSQL of this process.',
    default: '10',
    read: integer(2, 1_000),
  },
  redisUrl: {
    name: 'REDIS_URL',
    about: 'Redis or Valkey that the processes of a cluster share; needs DATABASE_URL.',
    default: null,
    read: url('redis', 'rediss'),
  },
  roles: {
    name: 'ROLES',
    about: 'What this process does: all, or some of api, worker and scheduler, comma-separated.',
    default: 'all',
    read: roleList,
  },
  skillsDir: {
    name: 'SKILLS_DIR',
    about: "Directory of the operator's own skills.",
    default: null,
    read: text,
  },
  skillLoadMs: {
    name: 'SKILL_LOAD_MS',
    about: 'Time that one file of skills may take to load, in milliseconds.',
    default: '60000',
    read: integer(1_000, 3_600_000),
  },
  logLevel: {
    name: 'LOG_LEVEL',
    about: 'Least severe log lines to write.',
    default: 'info',
    read: word('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  },
  accessLog: {
    name: 'ACCESS_LOG',
    about: 'Whether each request is a line of the log, at the level info: on or off.',
    default: 'off',
    read: word('on', 'off'),
  },
  executors: {
    name: 'EXECUTORS',
    about: 'Child processes that run skills; the number of cores when it is not set.',
    default: null,
    read: integer(1, 256),
  },
  workerConcurrency: {
    name: 'WORKER_CONCURRENCY',
    about: 'Runs at a time in this process, of each of the two queues that runs come by.',
    default: '100',
    read: integer(1, 10_000),
  },
  executorInspectPort: {
    name: 'EXECUTOR_INSPECT_PORT',
    about:
      'Port of 127.0.0.1 on which the first executor waits for a debugger, the others on those after it; deadlines do not hold then.',
    default: null,
    read: integer(1_024, 65_000),
  },
  executorMemoryMb: {
    name: 'EXECUTOR_MEMORY_MB',
    about: 'Memory that the skills in one executor may use, in MiB.',
    default: '512',
    read: integer(64, 65_536),
  },
  retryBackoffMs: {
    name: 'RETRY_BACKOFF_MS',
    about: 'Wait before the first retry of a job; it doubles with each.',
    default: '1000',
    read: integer(1, 3_600_000),
  },
  jobLeaseMs: {
    name: 'JOB_LEASE_MS',
    about: 'How long a job is held for a process that no longer answers.',
    default: '30000',
    read: integer(1_000, 3_600_000),
  },
  skillsAllowCidrs: {
    name: 'SKILLS_ALLOW_CIDRS',
    about: 'Private address ranges that the catalog may reach, comma-separated.',
    default: null,
    read: addressRanges,
  },
  webhookRetryDelays: {
    name: 'WEBHOOK_RETRY_DELAYS',
    about: 'Seconds before each retry of a webhook delivery, comma-separated; one retry for each.',
    default: '30,120,600,3600,21600',
    read: delays,
  },
  webhookTimeoutMs: {
    name: 'WEBHOOK_TIMEOUT_MS',
    about: 'Time that a webhook receiver has to answer, in milliseconds.',
    default: '10000',
    read: integer(100, 60_000),
  },
  webhookAllowCidrs: {
    name: 'WEBHOOK_ALLOW_CIDRS',
    about: 'Private address ranges that webhooks may be delivered to, comma-separated.',
    default: null,
    read: addressRanges,
  },
  defaultModel: {
    name: 'DEFAULT_MODEL',
    about: 'Model of agents that name none, as provider/model.',
    default: null,
    read: model,
  },
  modelContextTokens: {
    name: 'MODEL_CONTEXT_TOKENS',
    about: 'Tokens that a model can read and write at once; older messages are left out to fit.',
    default: '100000',
    read: integer(2_000, 100_000_000),
  },
  modelOutputTokens: {
    name: 'MODEL_OUTPUT_TOKENS',
    about: 'Most tokens of one answer of a model.',
    default: '4096',
    read: integer(16, 1_000_000),
  },
  modelFirstTokenTimeoutMs: {
    name: 'MODEL_FIRST_TOKEN_TIMEOUT_MS',
    about:
      'How long a provider of models may send nothing before its answer begins, in milliseconds.',
    default: '300000',
    read: integer(1_000, 3_600_000),
  },
  modelSilenceTimeoutMs: {
    name: 'MODEL_SILENCE_TIMEOUT_MS',
    about:
      'How long a provider of models may send nothing in the middle of its answer, in milliseconds.',
    default: '120000',
    read: integer(1_000, 3_600_000),
  },
  modelWaitsMax: {
    name: 'MODEL_WAITS_MAX',
    about: 'Runs that may wait for a model beside those that WORKER_CONCURRENCY counts.',
    default: '1000',
    read: integer(0, 100_000),
  },
  agentTurnsMax: {
    name: 'AGENT_TURNS_MAX',
    about: 'Calls of a model before a run that asks it has to have its answer.',
    default: '30',
    read: integer(1, 1_000),
  },
  agentTokensMax: {
    name: 'AGENT_TOKENS_MAX',
    about: 'Tokens that one attempt of a job may use over all its calls of models.',
    default: '1000000',
    read: integer(1, 1_000_000_000),
  },
  agentsMax: {
    name: 'AGENTS_MAX',
    about: 'Agents that an organization may have.',
    default: '10000',
    read: integer(1, 1_000_000),
  },
  apiKeysMax: {
    name: 'API_KEYS_MAX',
    about: 'API keys that an organization may have, revoked ones not counted.',
    default: '1000',
    read: integer(1, 1_000_000),
  },
  scheduledJobsMax: {
    name: 'SCHEDULED_JOBS_MAX',
    about: 'Scheduled jobs that an organization may have.',
    default: '2000',
    read: integer(1, 1_000_000),
  },
  triggersMax: {
    name: 'TRIGGERS_MAX',
    about: 'Triggers that an organization may have.',
    default: '2000',
    read: integer(1, 1_000_000),
  },
  webhooksMax: {
    name: 'WEBHOOKS_MAX',
    about: 'Webhooks that an organization may have.',
    default: '1000',
    read: integer(1, 1_000_000),
  },
  agentWebhooksMax: {
    name: 'AGENT_WEBHOOKS_MAX',
    about: 'Webhooks that one agent may have.',
    default: '50',
    read: integer(1, 1_000_000),
  },
  wrongSecretsPerMinute: {
    name: 'WRONG_SECRETS_PER_MINUTE',
    about: 'Wrong secrets that one address may send a minute, to /admin and the console together.',
    default: '30',
    read: integer(1, 1_000_000),
  },
  publicUrl: {
    name: 'PUBLIC_URL',
    about: 'Address of this platform as clients reach it, for the urls of triggers.',
    default: null,
    read: publicUrl,
  },
  connectionsPerAddressMax: {
    name: 'CONNECTIONS_PER_ADDRESS_MAX',
    about: 'Open connections from one address; behind a proxy all clients have its address.',
    default: '2000',
    read: integer(1, 100_000),
  },
  responseStallMs: {
    name: 'RESPONSE_STALL_MS',
    about:
      'A client that sends no byte of a request, or takes none of its answer, for this long is cut.',
    default: '30000',
    read: integer(100, 3_600_000),
  },
  responseTimeoutMs: {
    name: 'RESPONSE_TIMEOUT_MS',
    about: 'Time that a client has to take what is being sent to it, such as a whole answer.',
    default: '120000',
    read: integer(100, 3_600_000),
  },
  unreadAnswersMb: {
    name: 'UNREAD_ANSWERS_MB',
    about:
      'Answers that clients have not taken yet, in MiB; beyond it the slowest clients are cut.',
    default: '64',
    read: integer(1, 65_536),
  },
  streamsPerKeyMax: {
    name: 'STREAMS_PER_KEY_MAX',
    about: 'Open event streams of one API key in one process.',
    default: '200',
    read: integer(1, 100_000),
  },
  streamsPerAddressMax: {
    name: 'STREAMS_PER_ADDRESS_MAX',
    about: 'Open event streams of one address in one process.',
    default: '1000',
    read: integer(1, 100_000),
  },
  requestsPerKeyMax: {
    name: 'REQUESTS_PER_KEY_MAX',
    about:
      'Requests of one API key that may be under way at a time in one process, waits included.',
    default: '2000',
    read: integer(1, 100_000),
  },
  retentionDays: {
    name: 'RETENTION_DAYS',
    about: 'Days that ended jobs, their conversations and webhook deliveries are kept.',
    default: '30',
    read: integer(1, 36_500),
  },
  shutdownGraceMs: {
    name: 'SHUTDOWN_GRACE_MS',
    about: 'Time that runs get to finish when the platform stops.',
    default: '25000',
    read: integer(0, 600_000),
  },
} satisfies Record<string, Variable<unknown>>;
