/**
 * Configuration: a pure function from the environment to settings. Every variable stands in one
 * place with its default and its rule; all faults are reported at once, before anything starts.
 */
import { availableParallelism } from 'node:os';
import { adminSecretRule, isAdminSecret } from './admin-secret.ts';
import { parseAllowList } from './egress/allow-list.ts';
import { readEncryptionKey } from './encryption-key.ts';
import { type Misspelt, misspeltVariables } from './kernel/misspelt.ts';
import { type ProviderSettings, providerPattern, providersFrom } from './models/providers.ts';

/** One environment variable: what it is for, its default as text, and how to read it. */
interface Variable<T> {
  readonly name: string;
  readonly about: string;
  readonly default: string | null;
  /** The value, or a sentence's end: what was expected. */
  read(text: string): { value: T } | { expected: string };
}

const integer =
  (min: number, max: number): Variable<number>['read'] =>
  (text) =>
    /^\d{1,12}$/.test(text) && Number(text) >= min && Number(text) <= max
      ? { value: Number(text) }
      : { expected: `an integer from ${min} to ${max}` };

const text: Variable<string>['read'] = (value) =>
  value.trim() === '' ? { expected: 'a value that is not empty' } : { value };

const url =
  (...protocols: string[]): Variable<string>['read'] =>
  (value) =>
    protocols.some((protocol) => value.startsWith(`${protocol}://`)) && URL.canParse(value)
      ? { value }
      : { expected: `a url that begins with ${protocols.map((p) => `${p}://`).join(' or ')}` };

/** An address under which paths are appended: it may have a path of its own, and nothing behind that. */
const publicUrl: Variable<string>['read'] = (value) => {
  const parsed = URL.parse(value);
  const isPlain =
    /^https?:\/\/[^/\\\s?#@]+(?:\/[^\s?#]*)?$/i.test(value) &&
    parsed !== null &&
    value.length <= 2_048;
  return isPlain
    ? { value: parsed.href.replace(/\/$/, '') }
    : { expected: 'an http or https url without credentials, query and fragment' };
};

const word =
  <W extends string>(...words: W[]): Variable<W>['read'] =>
  (value) =>
    words.includes(value as W) ? { value: value as W } : { expected: `one of ${words.join(', ')}` };

const adminSecret: Variable<string>['read'] = (value) =>
  isAdminSecret(value) ? { value } : { expected: adminSecretRule };

/** Judged here, kept as text: the executors that use it read it from their environment. */
const addressRanges: Variable<string>['read'] = (value) => {
  if (value.trim() === '') return { expected: 'address ranges such as 10.0.0.0/8, fd00::/8' };
  try {
    parseAllowList(value);
    return { value };
  } catch (error) {
    return { expected: `address ranges, but ${(error as Error).message}` };
  }
};

const model: Variable<string>['read'] = (value) =>
  new RegExp(`^${providerPattern}/\\S+$`).test(value) && value.length <= 200
    ? { value }
    : { expected: 'provider/model, such as openai/gpt-5' };

/** What a process does (design: Out of one machine). */
export const roles = ['api', 'worker', 'scheduler'] as const;
export type Role = (typeof roles)[number];

const roleList: Variable<ReadonlySet<Role>>['read'] = (value) => {
  const given = value === 'all' ? roles : value.split(',').map((one) => one.trim());
  return given.every((one) => (roles as readonly string[]).includes(one))
    ? { value: new Set(given as readonly Role[]) }
    : { expected: `all, or some of ${roles.join(', ')}, comma-separated` };
};

/** Seconds, comma-separated; as milliseconds. */
const delays: Variable<readonly number[]>['read'] = (value) => {
  const seconds = value.split(',').map((one) => one.trim());
  const isValid = seconds.length <= 20 && seconds.every((one) => /^\d{1,6}(\.\d{1,3})?$/.test(one));
  return isValid
    ? { value: seconds.map((one) => Math.round(Number(one) * 1000)) }
    : { expected: 'up to 20 numbers of seconds such as 30,120' };
};

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

type Variables = typeof variables;
type ValueOf<V> = V extends { read(text: string): infer R }
  ? Extract<R, { value: unknown }>['value']
  : never;
type Settings = {
  [K in keyof Variables]: Variables[K]['default'] extends null
    ? ValueOf<Variables[K]> | null
    : ValueOf<Variables[K]>;
};

/** The settings of a process. */
export interface Config extends Omit<Settings, 'executors'> {
  readonly executors: number;
  /** Providers of models by name; the variables are named after them (see `providersFrom`). */
  readonly providers: ReadonlyMap<string, ProviderSettings>;
  /** Whether the platform runs in one process on its own database. */
  readonly isEmbedded: boolean;
  /** Whether other processes work on the same database. */
  readonly isClustered: boolean;
}

/** Everything that is wrong with the environment, a line each. */
export class ConfigError extends Error {
  constructor(faults: readonly string[]) {
    super(['The configuration is not valid:', ...faults.map((fault) => `  ${fault}`)].join('\n'));
    this.name = 'ConfigError';
  }
}

/** Reads the environment. Throws a ConfigError that names every fault. */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const faults: string[] = [];
  const settings: Record<string, unknown> = {};
  for (const [key, variable] of Object.entries(variables)) {
    const given = environment[variable.name] ?? variable.default;
    if (given === null) {
      settings[key] = null;
      continue;
    }
    const result = variable.read(given);
    if ('value' in result) settings[key] = result.value;
    else
      faults.push(`${variable.name}=${shown(variable.name, given)}: expected ${result.expected}`);
  }
  const read = settings as unknown as Settings;
  if (read.databaseUrl !== null && read.adminSecret === null && !faults.some(isAboutSecret)) {
    faults.push(
      'ADMIN_SECRET is not set: with DATABASE_URL it has to be, so that every process agrees',
    );
  }
  const { redisUrl, databaseUrl } = read;
  if (redisUrl && databaseUrl === null) {
    faults.push(
      'DATABASE_URL is not set: with REDIS_URL it has to be, for processes that share a queue share a database',
    );
  }
  if (read.roles?.size < roles.length && redisUrl === null) {
    faults.push(
      'REDIS_URL is not set: with ROLES it has to be, for what this process does not do others have to',
    );
  }
  const providers = providersFrom(environment);
  faults.push(...providers.faults);
  if (read.modelOutputTokens * 2 > read.modelContextTokens) {
    faults.push('MODEL_OUTPUT_TOKENS is more than half of MODEL_CONTEXT_TOKENS: nothing would fit');
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return {
    ...read,
    providers: providers.settings,
    executors: read.executors ?? availableParallelism(),
    isEmbedded: read.databaseUrl === null,
    isClustered: read.redisUrl !== null,
  };
}

/** Variables that are no settings and were probably meant as one. */
export function misspeltSettings(
  environment: Readonly<Record<string, string | undefined>>,
): Misspelt[] {
  const settings = Object.values(variables).map(({ name }) => name);
  const ofProviders = ['OPENAI', 'ANTHROPIC'].flatMap((name) => [
    `${name}_API_KEY`,
    `${name}_BASE_URL`,
  ]);
  // Any name before these makes a provider.
  const isProvider = (name: string) => /_(?:BASE_URL|API_KEY)$/.test(name);
  return misspeltVariables(environment, [...settings, ...ofProviders], isProvider);
}

function isAboutSecret(fault: string): boolean {
  return fault.startsWith('ADMIN_SECRET');
}

/** A value as a fault may show it: never a secret. */
function shown(name: string, value: string): string {
  return /SECRET|_KEY$|_URL$/.test(name) ? '…' : JSON.stringify(value);
}
