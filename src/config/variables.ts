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

/** One environment variable. */
interface Variable<T, Default> {
  /** What it is for. */
  readonly about: string;
  /** As text; null when it need not be set. */
  readonly default: Default;
  readonly read: Reader<T>;
}

/** Every variable, in the order in which the documentation lists them. */
const table = {
  port: variable('Port to listen on; 0 takes a free one.', '3000', integer(0, 65_535)),
  host: variable('Address to listen on.', '127.0.0.1', text),
  dataDir: variable(
    'Directory of the embedded database and the generated secrets.',
    './data',
    text,
  ),
  adminSecret: variable(
    'Secret of the /admin endpoints, at least 16 visible ASCII characters; generated at first start when it is not set.',
    null,
    adminSecret,
  ),
  encryptionKey: variable(
    'Key for stored credentials and signing secrets: 32 bytes, hex or base64; generated at first start when neither it nor DATABASE_URL is set.',
    null,
    readEncryptionKey,
  ),
  databaseUrl: variable(
    'PostgreSQL to use instead of the embedded database.',
    null,
    url('postgres', 'postgresql'),
  ),
  databasePoolMax: variable(
    'Most connections to PostgreSQL of this process.',
    '10',
    integer(2, 1_000),
  ),
  redisUrl: variable(
    'Redis or Valkey that the processes of a cluster share; needs DATABASE_URL.',
    null,
    url('redis', 'rediss'),
  ),
  roles: variable(
    'What this process does: all, or some of api, worker and scheduler, comma-separated.',
    'all',
    roleList,
  ),
  skillsDir: variable("Directory of the operator's own skills.", null, text),
  skillLoadMs: variable(
    'Time that one file of skills may take to load, in milliseconds.',
    '60000',
    integer(1_000, 3_600_000),
  ),
  logLevel: variable(
    'Least severe log lines to write.',
    'info',
    word('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  ),
  accessLog: variable(
    'Whether each request is a line of the log, at the level info: on or off.',
    'off',
    word('on', 'off'),
  ),
  executors: variable(
    'Child processes that run skills; the number of cores when it is not set.',
    null,
    integer(1, 256),
  ),
  workerConcurrency: variable(
    'Runs at a time in this process, of each of the two queues that runs come by.',
    '100',
    integer(1, 10_000),
  ),
  executorInspectPort: variable(
    'Port of 127.0.0.1 on which the first executor waits for a debugger, the others on those after it; deadlines do not hold then.',
    null,
    integer(1_024, 65_000),
  ),
  executorMemoryMb: variable(
    'Memory that the skills in one executor may use, in MiB.',
    '512',
    integer(64, 65_536),
  ),
  retryBackoffMs: variable(
    'Wait before the first retry of a job; it doubles with each.',
    '1000',
    integer(1, 3_600_000),
  ),
  jobLeaseMs: variable(
    'How long a job is held for a process that no longer answers.',
    '30000',
    integer(1_000, 3_600_000),
  ),
  skillsAllowCidrs: variable(
    'Private address ranges that the catalog may reach, comma-separated.',
    null,
    addressRanges,
  ),
  webhookRetryDelays: variable(
    'Seconds before each retry of a webhook delivery, comma-separated; one retry for each.',
    '30,120,600,3600,21600',
    delays,
  ),
  webhookTimeoutMs: variable(
    'Time that a webhook receiver has to answer, in milliseconds.',
    '10000',
    integer(100, 60_000),
  ),
  webhookAllowCidrs: variable(
    'Private address ranges that webhooks may be delivered to, comma-separated.',
    null,
    addressRanges,
  ),
  defaultModel: variable('Model of agents that name none, as provider/model.', null, model),
  modelContextTokens: variable(
    'Tokens that a model can read and write at once; older messages are left out to fit.',
    '100000',
    integer(2_000, 100_000_000),
  ),
  modelOutputTokens: variable(
    'Most tokens of one answer of a model.',
    '4096',
    integer(16, 1_000_000),
  ),
  modelFirstTokenTimeoutMs: variable(
    'How long a provider of models may send nothing before its answer begins, in milliseconds.',
    '300000',
    integer(1_000, 3_600_000),
  ),
  modelSilenceTimeoutMs: variable(
    'How long a provider of models may send nothing in the middle of its answer, in milliseconds.',
    '120000',
    integer(1_000, 3_600_000),
  ),
  modelWaitsMax: variable(
    'Runs that may wait for a model beside those that WORKER_CONCURRENCY counts.',
    '1000',
    integer(0, 100_000),
  ),
  agentTurnsMax: variable(
    'Calls of a model before a run that asks it has to have its answer.',
    '30',
    integer(1, 1_000),
  ),
  agentTokensMax: variable(
    'Tokens that one attempt of a job may use over all its calls of models.',
    '1000000',
    integer(1, 1_000_000_000),
  ),
  agentsMax: variable('Agents that an organization may have.', '10000', integer(1, 1_000_000)),
  apiKeysMax: variable(
    'API keys that an organization may have, revoked ones not counted.',
    '1000',
    integer(1, 1_000_000),
  ),
  scheduledJobsMax: variable(
    'Scheduled jobs that an organization may have.',
    '2000',
    integer(1, 1_000_000),
  ),
  triggersMax: variable('Triggers that an organization may have.', '2000', integer(1, 1_000_000)),
  webhooksMax: variable('Webhooks that an organization may have.', '1000', integer(1, 1_000_000)),
  agentWebhooksMax: variable('Webhooks that one agent may have.', '50', integer(1, 1_000_000)),
  wrongSecretsPerMinute: variable(
    'Wrong secrets that one address may send a minute, to /admin and the console together.',
    '30',
    integer(1, 1_000_000),
  ),
  publicUrl: variable(
    'Address of this platform as clients reach it, for the urls of triggers.',
    null,
    publicUrl,
  ),
  connectionsPerAddressMax: variable(
    'Open connections from one address; behind a proxy all clients have its address.',
    '2000',
    integer(1, 100_000),
  ),
  responseStallMs: variable(
    'A client that sends no byte of a request, or takes none of its answer, for this long is cut.',
    '30000',
    integer(100, 3_600_000),
  ),
  responseTimeoutMs: variable(
    'Time that a client has to take what is being sent to it, such as a whole answer.',
    '120000',
    integer(100, 3_600_000),
  ),
  unreadAnswersMb: variable(
    'Answers that clients have not taken yet, in MiB; beyond it the slowest clients are cut.',
    '64',
    integer(1, 65_536),
  ),
  streamsPerKeyMax: variable(
    'Open event streams of one API key in one process.',
    '200',
    integer(1, 100_000),
  ),
  streamsPerAddressMax: variable(
    'Open event streams of one address in one process.',
    '1000',
    integer(1, 100_000),
  ),
  requestsPerKeyMax: variable(
    'Requests of one API key that may be under way at a time in one process, waits included.',
    '2000',
    integer(1, 100_000),
  ),
  retentionDays: variable(
    'Days that ended jobs, their conversations and webhook deliveries are kept.',
    '30',
    integer(1, 36_500),
  ),
  shutdownGraceMs: variable(
    'Time that runs get to finish when the platform stops.',
    '25000',
    integer(0, 600_000),
  ),
};

type Table = typeof table;

/** The variables with their names: the variable of `databaseUrl` is `DATABASE_URL`. */
export const variables = Object.fromEntries(
  Object.entries(table).map(([key, one]) => [key, { ...one, name: nameOf(key) }]),
) as { readonly [Key in keyof Table]: Table[Key] & { readonly name: string } };

function variable<T, const Default extends string | null>(
  about: string,
  byDefault: Default,
  read: Reader<T>,
): Variable<T, Default> {
  return { about, default: byDefault, read };
}

function nameOf(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}
