/**
 * A whole platform in the test's own process: real socket, real database, real executors. Time may
 * be moved; everything else is as it runs in production. A test file that kills the process starts
 * one with `process.ts` instead.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { type App, startApp } from '../../src/apps/composition/app.ts';
import type { Parts } from '../../src/apps/composition/parts.ts';
import { openStores } from '../../src/apps/composition/stores.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { encryptionKeyOf } from '../../src/core/config/encryption-key.ts';
import { startExecutorPool } from '../../src/core/executors/pool.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { createLogger, type Logger } from '../../src/kernel/log.ts';
import { sharedExecutors } from './shared-executors.ts';
import { dropDatabase, freshRedis, migratedDatabase, migrateSqlite } from './shared-servers.ts';
import { waitFor } from './wait-for.ts';

export const adminSecret = 'the-admin-secret-of-the-tests';
const root = join(import.meta.dirname, '../..');
const catalog = join(root, 'src/core/skills/catalog');

/** Whether the suite is run on the stores of a cluster. */
const isOnCluster = process.env['TEST_STORES'] === 'cluster';

export interface PlatformOptions {
  /** Environment variables over the defaults of the tests. */
  readonly environment?: Record<string, string>;
  readonly clock?: Clock;
  /** Parts to use instead of the real ones. */
  readonly parts?: Partial<Parts>;
  /** Directories of skills; the catalog when left out. */
  readonly skillsDirs?: readonly string[];
  readonly log?: Logger;
  /** For what is about the directory of data, or takes the database apart. */
  readonly stores?: 'embedded';
  /** For what is about the executors themselves, or harms them: they are this platform's alone. */
  readonly executors?: 'own';
}

/** An answer, its body parsed when it is JSON. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
  readonly body: any;
  readonly text: string;
}

export interface RequestOptions {
  readonly key?: string;
  readonly headers?: Record<string, string>;
  /** Sent as JSON; a string or bytes are sent as they are. */
  readonly body?: unknown;
}

export interface Platform {
  readonly app: App;
  readonly url: string;
  readonly database: Database;
  readonly dataDir: string;
  /** Sends a request; JSON in, JSON out. */
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  /** As `request`, with the admin secret. */
  admin(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Issues a key with all scopes and a high limit, or what `fields` say; its plaintext. */
  key(fields?: Record<string, unknown>): Promise<string>;
  /** Runs a skill, named `category/version/name`, and waits for its end. */
  run(
    key: string,
    skill: string,
    input: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  /** The job once it has reached one of these states. */
  jobIn(key: string, jobId: string, ...statuses: string[]): Promise<Answer>;
  stop(): Promise<void>;
}

/**
 * Declares a test that runs on the embedded stores alone, in a file whose other tests also run on
 * those of a cluster.
 */
export const embeddedTest: DeclareTest & { skipIf(condition: boolean): DeclareTest } = isOnCluster
  ? Object.assign(() => {}, { skipIf: () => () => {} })
  : test;

type DeclareTest = (title: string, run: () => Promise<void>) => void;

/** Starts a platform; its caller stops it. */
export async function startPlatform(options: PlatformOptions = {}): Promise<Platform> {
  const dataDir = mkdtempSync(join(tmpdir(), 'skillwright-test-'));
  const cluster = isOnCluster ? await clusterFor(options) : undefined;
  if (!isOnCluster && options.environment?.['DATABASE_URL'] === undefined) {
    await migrateSqlite(dataDir);
  }
  const config = readConfig({
    ...cluster?.environment,
    PORT: '0',
    DATA_DIR: dataDir,
    ADMIN_SECRET: adminSecret,
    EXECUTORS: '1',
    RETRY_BACKOFF_MS: '10',
    SHUTDOWN_GRACE_MS: '2000',
    ...options.environment,
  });
  const log = options.log ?? createLogger('silent');
  const skillsDirs = options.skillsDirs ?? [
    catalog,
    ...(config.skillsDir === null ? [] : [config.skillsDir]),
  ];
  const isShared =
    options.executors !== 'own' &&
    options.log === undefined &&
    skillsDirs.every((directory) => directory.startsWith(root));
  const startExecutors = isShared ? sharedExecutors : startExecutorPool;
  const reloadExecutors = () => startExecutors(poolOptions);
  const poolOptions = {
    size: config.executors,
    memoryMb: config.executorMemoryMb,
    loadMs: config.skillLoadMs,
    skillsDirs,
    env: {
      SKILLS_ALLOW_CIDRS: config.skillsAllowCidrs ?? '',
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
    },
    log,
  };
  const executors = options.parts?.executors ?? (await startExecutors(poolOptions));
  const stores = await openStores(config, log, options.parts?.database);
  const { database } = stores;
  const app = await startApp({
    config,
    version: '0.0.0-test',
    adminSecret,
    encryptionKey: encryptionKeyOf(config.encryptionKey, config.dataDir, config.isEmbedded),
    ...stores,
    log,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    ...options.parts,
    database,
    executors,
    reloadExecutors,
  });
  return {
    ...clientOf(app.address),
    app,
    url: app.address,
    database,
    dataDir,
    async stop() {
      await app.stop();
      await cluster?.remove();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

interface ClusterStores {
  readonly environment: Record<string, string>;
  /** Removes them, where no further platform is to be started on them. */
  remove(): Promise<void>;
}

/** Stores by the directory of data that they stand for, so that a platform finds them at its next start. */
const clusters = new Map<string, Promise<ClusterStores>>();

/**
 * The stores of a cluster for a platform. A test that brings a store of its own has none of a cluster,
 * and one that moves time cannot move that of Redis: run on a cluster it would only run on SQLite a
 * second time, so it is refused.
 */
function clusterFor({
  parts,
  environment,
  clock,
  stores,
}: PlatformOptions): Promise<ClusterStores> {
  const isUsed =
    stores === undefined &&
    clock === undefined &&
    parts?.database === undefined &&
    environment?.['DATABASE_URL'] === undefined;
  if (!isUsed) {
    throw new Error(
      'This test has stores or a clock of its own: exclude its file from http-cluster (vitest.config.ts), or declare it with `embeddedTest`.',
    );
  }
  const dataDir = environment?.['DATA_DIR'];
  const known = dataDir === undefined ? undefined : clusters.get(dataDir);
  if (known !== undefined) return known;
  const made = makeCluster(dataDir === undefined);
  if (dataDir !== undefined) clusters.set(dataDir, made);
  return made;
}

async function makeCluster(isForOne: boolean): Promise<ClusterStores> {
  const [databaseUrl, redisUrl] = await Promise.all([migratedDatabase(), freshRedis()]);
  return {
    environment: {
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      // What the directory keeps for an embedded platform.
      ENCRYPTION_KEY: '5a'.repeat(32),
    },
    async remove() {
      if (isForOne) await dropDatabase(databaseUrl);
    },
  };
}

/** What a test asks of a platform at `url`, in whichever process it runs. */
export function clientOf(
  url: string,
): Pick<Platform, 'request' | 'admin' | 'key' | 'run' | 'jobIn'> {
  async function request(
    method: string,
    path: string,
    { key, headers = {}, body }: RequestOptions = {},
  ): Promise<Answer> {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array;
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(key === undefined ? {} : { 'x-api-key': key }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? (body as string) : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson && text !== '' ? JSON.parse(text) : undefined,
    };
  }

  const admin = (method: string, path: string, body?: unknown) =>
    request(method, path, { headers: { authorization: `Bearer ${adminSecret}` }, body });

  return {
    request,
    admin,

    async key(fields = {}) {
      const answer = await admin('POST', '/admin/api-keys', {
        client_name: 'a test',
        scopes: ['*'],
        rate_limit: 1_000_000,
        ...fields,
      });
      if (answer.status !== 201) throw new Error(`No key: ${answer.text}`);
      return answer.body.plaintext_key as string;
    },

    run: (key, skill, input, headers = {}) =>
      request('POST', `/api/${skill}`, {
        key,
        body: input,
        headers: { prefer: 'wait=30', ...headers },
      }),

    jobIn: (key, jobId, ...statuses) =>
      waitFor(
        async () => {
          const answer = await request('GET', `/api/jobs/${jobId}`, { key });
          return statuses.includes(answer.body?.status) ? answer : null;
        },
        { describe: `job ${jobId} is ${statuses.join(' or ')}`, deadlineMs: 30_000 },
      ),
  };
}
