import { readFileSync } from 'node:fs';
import { BlockList } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from './config.ts';
import { variables } from './variables.ts';

const table = Object.values(variables);
const cluster = { DATABASE_URL: 'postgres://u:hunter2@db/x', ADMIN_SECRET: 's3cret-of-the-tests' };

/** The faults of an environment, a line each. */
function faultsOf(environment: Record<string, string>): string[] {
  try {
    readConfig(environment);
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    const [title, ...faults] = (error as Error).message.split('\n');
    expect(title).toBe('The configuration is not valid:');
    return faults.map((fault) => fault.trim());
  }
}

describe('the environment', () => {
  test('may be empty: then the platform is embedded, with every default', () => {
    expect(readConfig({})).toEqual({
      port: 3000,
      host: '127.0.0.1',
      dataDir: './data',
      apiKeyPermissions: 'open',
      adminSecret: null,
      encryptionKey: null,
      databaseUrl: null,
      skillsDir: null,
      logLevel: 'info',
      accessLog: 'off',
      executors: availableParallelism(),
      executorsIdleSeconds: 90,
      workerConcurrency: 100,
      executorInspectPort: null,
      executorMemoryMb: 512,
      skillLoadMs: 60_000,
      retryBackoffMs: 1_000,
      jobLeaseMs: 30_000,
      skillsAllowCidrs: null,
      webhookRetryDelays: [30_000, 120_000, 600_000, 3_600_000, 21_600_000],
      webhookTimeoutMs: 10_000,
      webhookAllowCidrs: null,
      defaultModel: null,
      embeddingModel: null,
      modelContextTokens: 100_000,
      modelOutputTokens: 4_096,
      modelAbilities: [],
      modelPrices: [],
      modelFirstTokenTimeoutMs: 300_000,
      modelSilenceTimeoutMs: 120_000,
      modelKeepAliveTimeoutMs: 1_800_000,
      modelWaitsMax: 1_000,
      agentTurnsMax: 30,
      agentTokensMax: 1_000_000,
      agentsMax: 10_000,
      apiKeysMax: 1_000,
      scheduledJobsMax: 2_000,
      triggersMax: 2_000,
      webhooksMax: 1_000,
      agentWebhooksMax: 50,
      fileMaxMb: 32,
      filesMax: 100_000,
      filesMaxMb: 10_240,
      fileRetentionDays: 30,
      filesSpoolDir: null,
      filesSpoolMaxMb: 1_024,
      fileUploadTimeoutMs: 300_000,
      filesS3Url: null,
      filesS3Region: 'us-east-1',
      filesS3AccessKeyId: null,
      filesS3SecretAccessKey: null,
      publicUrl: null,
      mcpHosts: null,
      mcpCommands: 'off',
      corsOrigins: null,
      trustedProxies: null,
      connectionsPerAddressMax: 2_000,
      responseStallMs: 30_000,
      responseTimeoutMs: 120_000,
      unreadAnswersMb: 64,
      streamsPerKeyMax: 200,
      streamsPerOrganizationMax: 500,
      streamsPerAddressMax: 5_000,
      requestsPerKeyMax: 2_000,
      requestsPerOrganizationMax: 4_000,
      retentionDays: 30,
      keepPrompts: 'agents',
      promptRetentionDays: 7,
      promptsMaxMb: 256,
      shutdownGraceMs: 25_000,
      databasePoolMax: 10,
      redisUrl: null,
      roles: new Set(['api', 'worker', 'scheduler']),
      skillEnvironment: {},
      providers: new Map(),
      isEmbedded: true,
      isClustered: false,
    });
  });

  test('sets every variable', () => {
    const config = readConfig({
      PORT: '0',
      HOST: '::1',
      DATA_DIR: '/var/lib/skillwright',
      ADMIN_SECRET: 'kept-as-it-is-~!',
      ENCRYPTION_KEY: '0f'.repeat(32),
      DATABASE_URL: 'postgresql://db:5432/skillwright?sslmode=require',
      DATABASE_POOL_MAX: '2',
      REDIS_URL: 'rediss://user:hunter2@cache:6380/1',
      ROLES: 'scheduler,api',
      SKILLS_DIR: '/skills',
      FILE_MAX_MB: '1',
      FILES_MAX: '2',
      FILES_MAX_MB: '3',
      FILE_RETENTION_DAYS: '4',
      KEEP_PROMPTS: 'all',
      PROMPT_RETENTION_DAYS: '3',
      PROMPTS_MAX_MB: '0',
      FILES_SPOOL_DIR: '/data/spool',
      FILES_SPOOL_MAX_MB: '64',
      FILE_UPLOAD_TIMEOUT_MS: '5000',
      FILES_S3_URL: 'https://s3.example/bucket/',
      FILES_S3_REGION: 'eu-1',
      FILES_S3_ACCESS_KEY_ID: 'AKID',
      FILES_S3_SECRET_ACCESS_KEY: 'hunter3',
      LOG_LEVEL: 'debug',
      ACCESS_LOG: 'on',
      EXECUTORS: '4',
      EXECUTORS_IDLE_SECONDS: '600',
      WORKER_CONCURRENCY: '10',
      EXECUTOR_INSPECT_PORT: '9229',
      EXECUTOR_MEMORY_MB: '64',
      SKILL_LOAD_MS: '1000',
      RETRY_BACKOFF_MS: '1',
      JOB_LEASE_MS: '1000',
      SKILLS_ALLOW_CIDRS: '10.0.0.0/8, fd00::/8',
      WEBHOOK_RETRY_DELAYS: '0, 1.5,86400',
      WEBHOOK_TIMEOUT_MS: '100',
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      DEFAULT_MODEL: 'ollama/hf.co/org/model:7b',
      EMBEDDING_MODEL: 'ollama/nomic-embed-text',
      MODEL_CONTEXT_TOKENS: '2000',
      MODEL_OUTPUT_TOKENS: '1000',
      MODEL_FIRST_TOKEN_TIMEOUT_MS: '3600000',
      MODEL_KEEP_ALIVE_TIMEOUT_MS: '21600000',
      MODEL_SILENCE_TIMEOUT_MS: '1000',
      MODEL_WAITS_MAX: '0',
      AGENT_TURNS_MAX: '1',
      AGENT_TOKENS_MAX: '1',
      AGENTS_MAX: '1',
      API_KEYS_MAX: '2',
      SCHEDULED_JOBS_MAX: '3',
      TRIGGERS_MAX: '4',
      WEBHOOKS_MAX: '5',
      AGENT_WEBHOOKS_MAX: '6',
      PUBLIC_URL: 'https://skills.example.com/platform/',
      MCP_COMMANDS: 'on',
      MCP_HOSTS: 'platform, Skills.internal',
      CORS_ORIGINS: 'https://app.example.com, http://127.0.0.1:5173',
      TRUSTED_PROXIES: '10.0.0.5, 172.16.0.0/12, fd00::/8',
      API_KEY_PERMISSIONS: 'strict',
      CONNECTIONS_PER_ADDRESS_MAX: '1',
      RESPONSE_STALL_MS: '100',
      RESPONSE_TIMEOUT_MS: '100',
      UNREAD_ANSWERS_MB: '1',
      STREAMS_PER_KEY_MAX: '1',
      STREAMS_PER_ORGANIZATION_MAX: '1',
      STREAMS_PER_ADDRESS_MAX: '1',
      REQUESTS_PER_KEY_MAX: '1',
      REQUESTS_PER_ORGANIZATION_MAX: '1',
      RETENTION_DAYS: '1',
      SHUTDOWN_GRACE_MS: '0',
      OLLAMA_BASE_URL: 'http://127.0.0.1:11434/v1',
    });

    expect(config).toEqual({
      port: 0,
      host: '::1',
      dataDir: '/var/lib/skillwright',
      apiKeyPermissions: 'strict',
      adminSecret: 'kept-as-it-is-~!',
      encryptionKey: Buffer.alloc(32, 0x0f),
      databaseUrl: 'postgresql://db:5432/skillwright?sslmode=require',
      databasePoolMax: 2,
      redisUrl: 'rediss://user:hunter2@cache:6380/1',
      roles: new Set(['api', 'scheduler']),
      skillsDir: '/skills',
      fileMaxMb: 1,
      filesMax: 2,
      filesMaxMb: 3,
      fileRetentionDays: 4,
      keepPrompts: 'all',
      promptRetentionDays: 3,
      promptsMaxMb: 0,
      filesSpoolDir: '/data/spool',
      filesSpoolMaxMb: 64,
      fileUploadTimeoutMs: 5_000,
      filesS3Url: 'https://s3.example/bucket',
      filesS3Region: 'eu-1',
      filesS3AccessKeyId: 'AKID',
      filesS3SecretAccessKey: 'hunter3',
      logLevel: 'debug',
      accessLog: 'on',
      executors: 4,
      executorsIdleSeconds: 600,
      workerConcurrency: 10,
      executorInspectPort: 9_229,
      executorMemoryMb: 64,
      skillLoadMs: 1_000,
      retryBackoffMs: 1,
      jobLeaseMs: 1_000,
      skillsAllowCidrs: '10.0.0.0/8, fd00::/8',
      webhookRetryDelays: [0, 1_500, 86_400_000],
      webhookTimeoutMs: 100,
      webhookAllowCidrs: '127.0.0.0/8',
      defaultModel: 'ollama/hf.co/org/model:7b',
      embeddingModel: 'ollama/nomic-embed-text',
      modelContextTokens: 2_000,
      modelOutputTokens: 1_000,
      modelAbilities: [],
      modelPrices: [],
      modelFirstTokenTimeoutMs: 3_600_000,
      modelSilenceTimeoutMs: 1_000,
      modelKeepAliveTimeoutMs: 21_600_000,
      modelWaitsMax: 0,
      agentTurnsMax: 1,
      agentTokensMax: 1,
      agentsMax: 1,
      apiKeysMax: 2,
      scheduledJobsMax: 3,
      triggersMax: 4,
      webhooksMax: 5,
      agentWebhooksMax: 6,
      publicUrl: 'https://skills.example.com/platform',
      mcpCommands: 'on',
      mcpHosts: new Set(['platform', 'skills.internal']),
      corsOrigins: new Set(['https://app.example.com', 'http://127.0.0.1:5173']),
      trustedProxies: expect.any(BlockList),
      connectionsPerAddressMax: 1,
      responseStallMs: 100,
      responseTimeoutMs: 100,
      unreadAnswersMb: 1,
      streamsPerKeyMax: 1,
      streamsPerOrganizationMax: 1,
      streamsPerAddressMax: 1,
      requestsPerKeyMax: 1,
      requestsPerOrganizationMax: 1,
      retentionDays: 1,
      shutdownGraceMs: 0,
      skillEnvironment: { OLLAMA_BASE_URL: 'http://127.0.0.1:11434/v1' },
      providers: new Map([['ollama', { apiKey: null, baseUrl: 'http://127.0.0.1:11434/v1' }]]),
      isEmbedded: false,
      isClustered: true,
    });
  });

  test('gives settings of skills the variables that are no settings of the platform', () => {
    const given = {
      ADMIN_SECRET: 'a-secret-of-16-chars',
      OPENAI_API_KEY: 'sk-1',
      WEATHER_KEY: 'w',
    };

    expect(readConfig({ ...given, lower: 'x' }).skillEnvironment).toEqual({ WEATHER_KEY: 'w' });
  });

  test('may hold what other programs set', () => {
    const others = { PATH: '/bin', port: 'x', NODE_ENV: 'production', VITE_BASE_URL: '/app/' };

    expect(readConfig(others).port).toBe(3000);
  });
});

test('TRUSTED_PROXIES is a list of addresses and ranges', () => {
  const { trustedProxies } = readConfig({ TRUSTED_PROXIES: '10.0.0.5, 172.16.0.0/12,fd00::/8' });

  expect(trustedProxies?.check('10.0.0.5')).toBe(true);
  expect(trustedProxies?.check('10.0.0.6')).toBe(false);
  expect(trustedProxies?.check('172.31.255.255')).toBe(true);
  expect(trustedProxies?.check('fd12::1', 'ipv6')).toBe(true);
});

describe('a bad value stops the start and is named', () => {
  test.each([
    ['PORT', ['', ' ', '-1', '65536', '3000.5', '3e3', '0x50', '+80', 'http', '٣', '80 ']],
    ['HOST', ['', ' ']],
    ['DATA_DIR', ['', '\t']],
    [
      'ADMIN_SECRET',
      ['', '   ', 'x'.repeat(15), `${'x'.repeat(16)} `, 'ключ-ключ-ключ-ключ', 'a b'.repeat(6)],
    ],
    [
      'PUBLIC_URL',
      [
        '',
        'skills.example.com',
        'ftp://x',
        'https://',
        'https://a:b@x',
        'https://x/?a',
        'https://x/#a',
        'https://x y',
      ],
    ],
    ['ENCRYPTION_KEY', ['', '0f', '0f'.repeat(31), '0g'.repeat(32), `${'0f'.repeat(32)}\n`]],
    ['MCP_COMMANDS', ['', 'yes', 'true']],
    ['MCP_HOSTS', ['', 'a:80', 'https://a', 'a/b', 'a,,b']],
    ['TRUSTED_PROXIES', ['', ',', 'proxy', '10.0.0.1/8', '0.0.0.0/0', '::/0', '10.0.0.1;10.0.0.2']],
    ['API_KEY_PERMISSIONS', ['', 'closed', 'Strict']],
    ['CORS_ORIGINS', ['', 'app.example.com', 'https://a/', 'ftp://a', '*,https://a']],
    ['DATABASE_URL', ['', 'db', 'mysql://db/x', 'postgres:', 'postgres://[', 'POSTGRES://db/x']],
    ['DATABASE_POOL_MAX', ['1', '1001']],
    ['REDIS_URL', ['', 'cache', 'http://cache', 'redis:']],
    ['ROLES', ['', 'none', 'api,', 'api;worker', 'API', 'all,api']],
    ['SKILLS_DIR', ['']],
    ['LOG_LEVEL', ['', 'INFO', 'verbose']],
    ['EXECUTORS', ['0', '257', 'two']],
    ['EXECUTORS_IDLE_SECONDS', ['-1', '86401', 'never']],
    ['WORKER_CONCURRENCY', ['0', '10001']],
    ['EXECUTOR_INSPECT_PORT', ['0', '80', '65535']],
    ['EXECUTOR_MEMORY_MB', ['63', '65537', '512MB']],
    ['RETRY_BACKOFF_MS', ['0', '3600001']],
    ['JOB_LEASE_MS', ['999', '3600001', '30s']],
    ['SKILLS_ALLOW_CIDRS', ['', 'localhost', '10.0.0.1/8', '10.0.0.0/33', '10.0.0.0/8;fd00::/8']],
    ['WEBHOOK_RETRY_DELAYS', ['', 'none', '30,', '30;120', '-1', '1e3', '1234567', '1.0001']],
    ['WEBHOOK_RETRY_DELAYS', [Array.from({ length: 21 }, () => '1').join()]],
    ['WEBHOOK_TIMEOUT_MS', ['99', '60001', '10s']],
    ['WEBHOOK_ALLOW_CIDRS', ['', 'localhost', '127.0.0.1/8']],
    ['DEFAULT_MODEL', ['', 'gpt-5', 'openai/', '/gpt-5', 'OpenAI/gpt-5', `a/${'x'.repeat(199)}`]],
    ['EMBEDDING_MODEL', ['', 'openai/', 'anthropic/claude-opus-4-5']],
    ['MODEL_CONTEXT_TOKENS', ['1999', '100000001', '128k']],
    ['MODEL_OUTPUT_TOKENS', ['15', '1000001']],
    ['MODEL_FIRST_TOKEN_TIMEOUT_MS', ['999', '3600001']],
    ['MODEL_KEEP_ALIVE_TIMEOUT_MS', ['999', '21600001']],
    ['MODEL_SILENCE_TIMEOUT_MS', ['999', '3600001']],
    ['MODEL_WAITS_MAX', ['-1', '100001']],
    ['AGENT_TURNS_MAX', ['0', '1001']],
    ['AGENT_TOKENS_MAX', ['0', '1000000001']],
    ['OPENAI_BASE_URL', ['127.0.0.1:11434', 'ftp://host/v1']],
    ['RETENTION_DAYS', ['0', '36501', '99999999999999']],
    ['SHUTDOWN_GRACE_MS', ['-1', '600001']],
  ])('%s', (name, values) => {
    for (const value of values) {
      const secret = { ADMIN_SECRET: 's3cret-of-the-tests' };
      const faults = faultsOf({ ...(name === 'ADMIN_SECRET' ? {} : secret), [name]: value });

      expect(faults, JSON.stringify(value)).toHaveLength(1);
      expect(faults[0]).toMatch(new RegExp(`^${name}=.*: expected .`));
    }
  });

  test('all at once, each in a line of its own', () => {
    const everything = Object.fromEntries(table.map(({ name }) => [name, ' ']));

    const faults = faultsOf(everything);

    const named = faults.map((fault) => /^\w+/.exec(fault)?.[0]);
    expect(named).toEqual(table.map(({ name }) => name));
  });

  test('with the value, so that it is found, and with what was expected', () => {
    expect(faultsOf({ PORT: '70000' })).toEqual([
      'PORT="70000": expected an integer from 0 to 65535',
    ]);
  });

  test.each([
    ['ADMIN_SECRET', '\t \t'],
    ['DATABASE_URL', 'http://user:hunter2@db'],
    ['REDIS_URL', 'redis://:hunter2@cache'],
    ['ENCRYPTION_KEY', 'hunter2'],
    ['OPENAI_API_KEY', 'hunter2 and more'],
    ['ANTHROPIC_BASE_URL', 'https://user:hunter2@gateway/v1'],
  ])('but never with the secret in %s', (name, value) => {
    const [fault, ...others] = faultsOf({ ADMIN_SECRET: 's3cret-of-the-tests', [name]: value });

    expect(others).toEqual([]);
    expect(fault).toContain(name);
    expect(fault).not.toContain(value);
    expect(fault).not.toContain('hunter2');
  });
});

describe('a combination that cannot work is refused with a sentence that says what to set', () => {
  test('DATABASE_URL without ADMIN_SECRET', () => {
    const { DATABASE_URL } = cluster;

    expect(faultsOf({ DATABASE_URL })).toEqual([expect.stringMatching(/^ADMIN_SECRET is not set/)]);
    expect(readConfig(cluster)).toMatchObject({
      isEmbedded: false,
      adminSecret: 's3cret-of-the-tests',
    });
  });

  test('answers that fill the window of the model', () => {
    const faults = faultsOf({ MODEL_CONTEXT_TOKENS: '8000', MODEL_OUTPUT_TOKENS: '4001' });

    expect(faults).toEqual([expect.stringMatching(/^MODEL_OUTPUT_TOKENS is more than half/)]);
  });

  test('REDIS_URL without DATABASE_URL', () => {
    expect(faultsOf({ REDIS_URL: 'redis://cache' })).toEqual([
      expect.stringMatching(/^DATABASE_URL is not set: with REDIS_URL/),
    ]);
  });

  test.each(['api', 'worker,scheduler'])('ROLES=%s without REDIS_URL', (ROLES) => {
    expect(faultsOf({ ...cluster, ROLES })).toEqual([
      expect.stringMatching(/^REDIS_URL is not set: with ROLES/),
    ]);
    expect(faultsOf({ ROLES: 'api,scheduler,worker' })).toEqual([]);
  });
});

describe('a process of a cluster', () => {
  const shared = { ...cluster, REDIS_URL: 'redis://cache' };

  test('does everything when ROLES says nothing else', () => {
    const all = new Set(['api', 'worker', 'scheduler']);

    expect(readConfig(shared)).toMatchObject({ isClustered: true, isEmbedded: false, roles: all });
    expect(readConfig({ ...shared, ROLES: 'all' }).roles).toEqual(all);
    expect(readConfig(cluster)).toMatchObject({ isClustered: false, roles: all });
  });

  test('does what ROLES says, with spaces or without', () => {
    expect(readConfig({ ...shared, ROLES: 'api, scheduler' }).roles).toEqual(
      new Set(['api', 'scheduler']),
    );
  });
});

test('storage of files needs both keys, because requests to it are signed', () => {
  expect(faultsOf({ FILE_MAX_MB: '2048' })).toEqual([
    'FILES_SPOOL_MAX_MB is less than FILE_MAX_MB: the largest file would never be kept',
  ]);
  expect(faultsOf({ FILES_S3_URL: 'https://s3.example/bucket' })).toEqual([
    'FILES_S3_ACCESS_KEY_ID is not set: with FILES_S3_URL it has to be, for requests to the storage are signed',
    'FILES_S3_SECRET_ACCESS_KEY is not set: with FILES_S3_URL it has to be, for requests to the storage are signed',
  ]);
});

describe('the documentation', () => {
  test('has one line for each variable, as the table has them', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/configuration.md'), 'utf8');
    const rows = page.split('\n').filter((line) => line.startsWith('| `'));

    expect(rows).toEqual(
      table.map(({ name, default: text, about }) => {
        const shown = text === null ? '' : `\`${text}\``;
        return `| \`${name}\` | ${shown} | ${about} |`;
      }),
    );
  });

  test('says of each variable in a sentence what it is for', () => {
    for (const { name, about } of table) {
      expect(name).toMatch(/^[A-Z]+(_[A-Z0-9]+)*$/);
      expect(about).toMatch(/^[A-Z].*\.$/);
    }
  });

  test('has defaults that the variables accept themselves', () => {
    for (const { default: text, read } of table) {
      if (text !== null) expect(read(text)).toHaveProperty('value');
    }
  });
});
