/** Every environment variable of the platform, with its default and its rule: one table, in one file. */
import { readEncryptionKey } from './encryption-key.ts';
import {
  addressRanges,
  adminSecret,
  delays,
  embeddingModel,
  hostList,
  integer,
  model,
  modelAbilities,
  modelPrices,
  originList,
  publicUrl,
  type Reader,
  roleList,
  text,
  trustedProxies,
  url,
  word,
} from './readers.ts';

/** One environment variable. */
interface Variable<T, Default> {
  readonly name: string;
  /** What it is for. */
  readonly about: string;
  /** As text; null when it need not be set. */
  readonly default: Default;
  readonly read: Reader<T>;
}

/** Every variable by its setting, in the order in which the documentation lists them. */
export const variables = {
  port: variable('PORT', 'Port to listen on; 0 takes a free one.', '3000', integer(0, 65_535)),
  host: variable('HOST', 'Address to listen on.', '127.0.0.1', text),
  corsOrigins: variable(
    'CORS_ORIGINS',
    'Origins whose pages may call the API from a browser, comma-separated; * for all. None when it is not set.',
    null,
    originList,
  ),
  dataDir: variable(
    'DATA_DIR',
    'Directory of the embedded database and the generated secrets.',
    './data',
    text,
  ),
  apiKeyPermissions: variable(
    'API_KEY_PERMISSIONS',
    'What a valid key may do without a scope: open includes memories, schedules, webhooks, conversations, files and the registry; strict needs the scope of each name.',
    'open',
    word('open', 'strict'),
  ),
  adminSecret: variable(
    'ADMIN_SECRET',
    'Secret of the /admin endpoints, at least 16 visible ASCII characters; generated at first start when it is not set.',
    null,
    adminSecret,
  ),
  encryptionKey: variable(
    'ENCRYPTION_KEY',
    'Key for stored credentials, settings of skills and signing secrets: 32 bytes, hex or base64; generated at first start when neither it nor DATABASE_URL is set.',
    null,
    readEncryptionKey,
  ),
  databaseUrl: variable(
    'DATABASE_URL',
    'PostgreSQL to use instead of the embedded database.',
    null,
    url('postgres', 'postgresql'),
  ),
  databasePoolMax: variable(
    'DATABASE_POOL_MAX',
    'Most connections to PostgreSQL of this process.',
    '10',
    integer(2, 1_000),
  ),
  redisUrl: variable(
    'REDIS_URL',
    'Redis or Valkey that the processes of a cluster share; needs DATABASE_URL.',
    null,
    url('redis', 'rediss'),
  ),
  roles: variable(
    'ROLES',
    'What this process does: all, or some of api, worker and scheduler, comma-separated.',
    'all',
    roleList,
  ),
  skillsDir: variable('SKILLS_DIR', "Directory of the operator's own skills.", null, text),
  skillLoadMs: variable(
    'SKILL_LOAD_MS',
    'Time that one file of skills may take to load, in milliseconds.',
    '60000',
    integer(1_000, 3_600_000),
  ),
  logLevel: variable(
    'LOG_LEVEL',
    'Least severe log lines to write.',
    'info',
    word('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  ),
  accessLog: variable(
    'ACCESS_LOG',
    'Whether each request is a line of the log, at the level info: on or off.',
    'off',
    word('on', 'off'),
  ),
  executors: variable(
    'EXECUTORS',
    'Most child processes that share the runs; the number of cores when it is not set.',
    null,
    integer(1, 256),
  ),
  executorsIdleSeconds: variable(
    'EXECUTORS_IDLE_SECONDS',
    'Seconds without a run after which a worker ends its executors; the next run starts one. 0 keeps them.',
    '90',
    integer(0, 86_400),
  ),
  workerConcurrency: variable(
    'WORKER_CONCURRENCY',
    'Runs at a time in this process, of each of the two queues that runs come by; from 2 on, a process begins one more for each sixteen, rounded up, for organizations that run nothing.',
    '100',
    integer(1, 10_000),
  ),
  executorInspectPort: variable(
    'EXECUTOR_INSPECT_PORT',
    'Port of 127.0.0.1 on which the first executor waits for a debugger, the others on those after it; deadlines do not hold then.',
    null,
    integer(1_024, 65_000),
  ),
  executorMemoryMb: variable(
    'EXECUTOR_MEMORY_MB',
    'Memory that the skills in one executor may use, in MiB.',
    '512',
    integer(64, 65_536),
  ),
  retryBackoffMs: variable(
    'RETRY_BACKOFF_MS',
    'Wait before the first retry of a job; it doubles with each.',
    '1000',
    integer(1, 3_600_000),
  ),
  jobLeaseMs: variable(
    'JOB_LEASE_MS',
    'How long a job is held for a process that no longer answers.',
    '30000',
    integer(1_000, 3_600_000),
  ),
  skillsAllowCidrs: variable(
    'SKILLS_ALLOW_CIDRS',
    'Private address ranges that the catalog may reach, comma-separated.',
    null,
    addressRanges,
  ),
  webhookRetryDelays: variable(
    'WEBHOOK_RETRY_DELAYS',
    'Seconds before each retry of a webhook delivery, comma-separated; one retry for each.',
    '30,120,600,3600,21600',
    delays,
  ),
  webhookTimeoutMs: variable(
    'WEBHOOK_TIMEOUT_MS',
    'Time that a webhook receiver has to answer, in milliseconds.',
    '10000',
    integer(100, 60_000),
  ),
  webhookAllowCidrs: variable(
    'WEBHOOK_ALLOW_CIDRS',
    'Private address ranges that webhooks may be delivered to, comma-separated.',
    null,
    addressRanges,
  ),
  defaultModel: variable(
    'DEFAULT_MODEL',
    'Model of agents that name none, as provider/model.',
    null,
    model,
  ),
  embeddingModel: variable(
    'EMBEDDING_MODEL',
    'Model that makes vectors of memories, as provider/model, so that a search finds what means the same; none when it is not set.',
    null,
    embeddingModel,
  ),
  modelContextTokens: variable(
    'MODEL_CONTEXT_TOKENS',
    'Tokens that a model can read and write at once; older messages are left out to fit.',
    '100000',
    integer(2_000, 100_000_000),
  ),
  modelOutputTokens: variable(
    'MODEL_OUTPUT_TOKENS',
    'Most tokens of one answer of a model.',
    '4096',
    integer(16, 1_000_000),
  ),
  modelAbilities: variable(
    'MODEL_ABILITIES',
    'What models can, beside what is built in: a JSON list, or the path of a file with one.',
    '[]',
    modelAbilities,
  ),
  modelPrices: variable(
    'MODEL_PRICES',
    'Prices of models beside the built-in ones: a JSON list, or the path of a file with one.',
    '[]',
    modelPrices,
  ),
  modelFirstTokenTimeoutMs: variable(
    'MODEL_FIRST_TOKEN_TIMEOUT_MS',
    'How long a provider of models may send nothing before its answer begins, in milliseconds.',
    '300000',
    integer(1_000, 3_600_000),
  ),
  modelSilenceTimeoutMs: variable(
    'MODEL_SILENCE_TIMEOUT_MS',
    'How long a provider of models may send nothing in the middle of its answer, in milliseconds.',
    '120000',
    integer(1_000, 3_600_000),
  ),
  modelKeepAliveTimeoutMs: variable(
    'MODEL_KEEP_ALIVE_TIMEOUT_MS',
    'How long a provider of models may send comments and pings alone, before its answer or within it, in milliseconds.',
    '1800000',
    integer(1_000, 21_600_000),
  ),
  modelWaitsMax: variable(
    'MODEL_WAITS_MAX',
    'Runs that may wait for a model beside those that WORKER_CONCURRENCY counts.',
    '1000',
    integer(0, 100_000),
  ),
  agentTurnsMax: variable(
    'AGENT_TURNS_MAX',
    'Calls of a model before a run that asks it has to have its answer.',
    '30',
    integer(1, 1_000),
  ),
  agentTokensMax: variable(
    'AGENT_TOKENS_MAX',
    'Tokens that one attempt of a job may use over all its calls of models.',
    '1000000',
    integer(1, 1_000_000_000),
  ),
  agentsMax: variable(
    'AGENTS_MAX',
    'Agents that an organization may have.',
    '10000',
    integer(1, 1_000_000),
  ),
  apiKeysMax: variable(
    'API_KEYS_MAX',
    'API keys that an organization may have, revoked ones not counted.',
    '1000',
    integer(1, 1_000_000),
  ),
  scheduledJobsMax: variable(
    'SCHEDULED_JOBS_MAX',
    'Scheduled jobs that an organization may have.',
    '2000',
    integer(1, 1_000_000),
  ),
  triggersMax: variable(
    'TRIGGERS_MAX',
    'Triggers that an organization may have.',
    '2000',
    integer(1, 1_000_000),
  ),
  webhooksMax: variable(
    'WEBHOOKS_MAX',
    'Webhooks that an organization may have.',
    '1000',
    integer(1, 1_000_000),
  ),
  agentWebhooksMax: variable(
    'AGENT_WEBHOOKS_MAX',
    'Webhooks that one agent may have.',
    '50',
    integer(1, 1_000_000),
  ),
  fileMaxMb: variable(
    'FILE_MAX_MB',
    'Size that one file may have, in MiB.',
    '32',
    integer(1, 4_096),
  ),
  filesMax: variable(
    'FILES_MAX',
    'Files that an organization may have.',
    '100000',
    integer(1, 100_000_000),
  ),
  filesMaxMb: variable(
    'FILES_MAX_MB',
    'Size that all files of an organization may have together, in MiB.',
    '10240',
    integer(1, 100_000_000),
  ),
  fileRetentionDays: variable(
    'FILE_RETENTION_DAYS',
    'Days that a file is kept after it was given or used last.',
    '30',
    integer(1, 36_500),
  ),
  filesSpoolDir: variable(
    'FILES_SPOOL_DIR',
    'Folder in which files wait until FILES_S3_URL has them: on a disk of its own in a cluster, of FILES_SPOOL_MAX_MB and some more. Without it a folder of the temporary ones.',
    null,
    text,
  ),
  filesSpoolMaxMb: variable(
    'FILES_SPOOL_MAX_MB',
    'Size that all files on their way through this process may have together, in MiB; those of one organization half of it.',
    '1024',
    integer(1, 1_000_000),
  ),
  fileUploadTimeoutMs: variable(
    'FILE_UPLOAD_TIMEOUT_MS',
    'Time that a client has to send a file, in milliseconds.',
    '300000',
    integer(1_000, 3_600_000),
  ),
  filesS3Url: variable(
    'FILES_S3_URL',
    'S3-compatible storage of files: its endpoint with the bucket. Without it files are in DATA_DIR, and the processes of a cluster keep none.',
    null,
    publicUrl,
  ),
  filesS3Region: variable('FILES_S3_REGION', 'Region of that storage.', 'us-east-1', text),
  filesS3AccessKeyId: variable('FILES_S3_ACCESS_KEY_ID', 'Access key of that storage.', null, text),
  filesS3SecretAccessKey: variable(
    'FILES_S3_SECRET_ACCESS_KEY',
    'Secret of that access key.',
    null,
    text,
  ),
  publicUrl: variable(
    'PUBLIC_URL',
    'Address of this platform as clients reach it, for the urls of triggers and to which authorization servers send people back.',
    null,
    publicUrl,
  ),
  mcpHosts: variable(
    'MCP_HOSTS',
    'Further host names by which clients reach /mcp and people the console, comma-separated; localhost, addresses and the host of PUBLIC_URL always are.',
    null,
    hostList,
  ),
  mcpCommands: variable(
    'MCP_COMMANDS',
    'Whether the admin API may add MCP servers that are commands, which run on this machine: on or off.',
    'off',
    word('on', 'off'),
  ),
  trustedProxies: variable(
    'TRUSTED_PROXIES',
    'Addresses or ranges of the proxies in front, comma-separated, whose x-forwarded-for or forwarded header names the client. Both headers are ignored when it is not set.',
    null,
    trustedProxies,
  ),
  connectionsPerAddressMax: variable(
    'CONNECTIONS_PER_ADDRESS_MAX',
    'Open connections from one address without a request of a valid API key under way; through one of TRUSTED_PROXIES, requests under way of one client.',
    '2000',
    integer(1, 100_000),
  ),
  responseStallMs: variable(
    'RESPONSE_STALL_MS',
    'A client that sends no byte of a request, or takes none of its answer, for this long is cut.',
    '30000',
    integer(100, 3_600_000),
  ),
  responseTimeoutMs: variable(
    'RESPONSE_TIMEOUT_MS',
    'Time that a client has to take what is being sent to it, such as a whole answer.',
    '120000',
    integer(100, 3_600_000),
  ),
  unreadAnswersMb: variable(
    'UNREAD_ANSWERS_MB',
    'Answers that clients have not taken yet, in MiB; beyond it the slowest clients are cut.',
    '64',
    integer(1, 65_536),
  ),
  streamsPerKeyMax: variable(
    'STREAMS_PER_KEY_MAX',
    'Open event streams of one API key in one process.',
    '200',
    integer(1, 100_000),
  ),
  streamsPerOrganizationMax: variable(
    'STREAMS_PER_ORGANIZATION_MAX',
    'Open event streams of one organization in one process.',
    '500',
    integer(1, 100_000),
  ),
  streamsPerAddressMax: variable(
    'STREAMS_PER_ADDRESS_MAX',
    'Open event streams of one address in one process.',
    '5000',
    integer(1, 100_000),
  ),
  requestsPerKeyMax: variable(
    'REQUESTS_PER_KEY_MAX',
    'Requests of one API key that may be under way at a time in one process, waits included.',
    '2000',
    integer(1, 100_000),
  ),
  requestsPerOrganizationMax: variable(
    'REQUESTS_PER_ORGANIZATION_MAX',
    'Requests of one organization that may be under way at a time in one process, waits included.',
    '4000',
    integer(1, 100_000),
  ),
  retentionDays: variable(
    'RETENTION_DAYS',
    'Days that ended jobs, their conversations and webhook deliveries are kept.',
    '30',
    integer(1, 36_500),
  ),
  keepPrompts: variable(
    'KEEP_PROMPTS',
    'Whose prompts, what models are sent, are kept: off (of no agent), agents (of those with keep_prompts) or all. An administrator can set another value for an organization.',
    'agents',
    word('off', 'agents', 'all'),
  ),
  promptRetentionDays: variable(
    'PROMPT_RETENTION_DAYS',
    'Days that the prompts of a job are kept after the last of them.',
    '7',
    integer(1, 36_500),
  ),
  promptsMaxMb: variable(
    'PROMPTS_MAX_MB',
    'Size that the kept prompts of an organization may have together, in MiB. Where it is reached, new ones are not kept.',
    '256',
    integer(0, 1_000_000),
  ),
  shutdownGraceMs: variable(
    'SHUTDOWN_GRACE_MS',
    'Time that runs get to finish when the platform stops, however long their time limit is; the others go back to the queue.',
    '25000',
    integer(0, 600_000),
  ),
};

function variable<T, const Default extends string | null>(
  name: string,
  about: string,
  byDefault: Default,
  read: Reader<T>,
): Variable<T, Default> {
  return { name, about, default: byDefault, read };
}
