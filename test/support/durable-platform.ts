/**
 * A platform whose processes tests kill while its runs wait: one process on SQLite, or a cluster with
 * two workers on PostgreSQL. A process that was killed is started again at once. Requests are repeated
 * until they are answered, as clients do.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { expect } from 'vitest';
import type { PlayInput } from '../fixtures/skills/durable/play.ts';
import { type ClusterProcess, startCluster } from './cluster.ts';
import type { Answer } from './platform.ts';
import { type PlatformProcess, startProcess } from './process.ts';
import { rounds } from './soak.ts';
import { newTenant } from './tenant.ts';
import { waitFor } from './wait-for.ts';

export const durableSkills = join(import.meta.dirname, '../fixtures/skills/durable');
export const play = 'durable/v1.0/play';
const leaseMs = 3_000;

export interface DurableStores {
  /** The address of a process that takes requests. */
  url(): Pick<PlatformProcess, 'request' | 'admin' | 'jobIn'>;
  sql(text: string): Promise<Row[]>;
  /** Kills the process that takes requests, or one that executes runs. */
  kill(role: 'api' | 'worker'): Promise<void>;
  /** How often a process was found dead and started again. */
  restarts(): number;
  /** What the processes have printed. */
  log(): string;
  close(): Promise<void>;
}
type Row = Record<string, unknown>;
type Environment = Readonly<Record<string, string>>;

export interface DurablePlatform extends Pick<DurableStores, 'sql' | 'kill' | 'restarts'> {
  readonly organization: string;
  /** Sends a request once. */
  once(method: string, path: string, body?: unknown, headers?: Environment): Promise<Answer>;
  /** Repeats a request until it is answered, and not by 503. */
  send(method: string, path: string, body?: unknown, headers?: Environment): Promise<Answer>;
  /** Lets a run play its acts; the job's id. */
  start(acts: PlayInput['acts']): Promise<string>;
  job(id: string): Promise<Answer['body']>;
  jobIn(id: string, ...statuses: string[]): Promise<Answer['body']>;
  /** Approves what is asked, until `isOver`. */
  approveAll(isOver: () => boolean): Promise<void>;
  untilAllEnded(deadlineMs?: number): Promise<void>;
  /** Executions of each step, by `job name key`. */
  executions(): Map<string, number>;
  /** The steps that are on record, with their executions so far. */
  remember(): Promise<void>;
  /** No step that was ever remembered as recorded was executed again, and each has one idempotency key. */
  expectRecordedOnce(): Promise<void>;
  leave(): void;
}

export const durableEngines = [
  { name: 'SQLite', open: openEmbedded },
  { name: 'PostgreSQL and two workers', open: openCluster },
];

/** What a test sees of a platform that it shares with others: an organization and a record of steps of its own. */
export async function enterDurablePlatform(stores: DurableStores): Promise<DurablePlatform> {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-durable-'));
  const log = join(directory, 'steps');
  writeFileSync(log, '');
  // An earlier test may have killed it last.
  const { key, organization } = await waitFor(() => newTenant(stores.url()), {
    describe: 'a key is issued',
    deadlineMs: 60_000,
  });
  const restartsBefore = stores.restarts();
  const recorded = new Map<string, number>();

  const once: DurablePlatform['once'] = (method, path, body, headers = {}) =>
    stores.url().request(method, path, { key, headers, ...(body === undefined ? {} : { body }) });
  const send: DurablePlatform['send'] = (...request) =>
    waitFor(
      async () => {
        const answer = await once(...request);
        return answer.status === 503 ? null : answer;
      },
      { describe: `${request[0]} ${request[1]} is answered`, deadlineMs: 60_000 },
    );
  const job = async (id: string) => (await send('GET', `/api/jobs/${id}`)).body;

  function executions(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const line of readFileSync(log, 'utf8').split('\n')) {
      if (line !== '') counts.set(line, (counts.get(line) ?? 0) + 1);
    }
    return counts;
  }

  async function recordedSteps(): Promise<Set<string>> {
    const rows = await stores.sql(
      `SELECT job_id, result FROM job_steps WHERE kind = 'step' AND status = 'completed'`,
    );
    // The result of each step is its name and two words.
    const nameIn = (result: unknown) => /([\w#.-]+) is done/.exec(String(result))?.[1];
    return new Set(rows.map(({ job_id, result }) => `${job_id} ${nameIn(result)}`));
  }

  return {
    organization,
    sql: stores.sql,
    kill: stores.kill,
    restarts: () => stores.restarts() - restartsBefore,
    once,
    send,
    job,
    executions,
    async start(acts) {
      const headers = { 'idempotency-key': `play-${Math.random()}` };
      const answer = await send('POST', `/api/${play}`, { log, acts }, headers);
      expect(answer.status, answer.text).toBe(202);
      return answer.body.job_id;
    },
    jobIn(id, ...statuses) {
      let now: Answer['body'];
      let steps: Answer['body'];
      return waitFor(
        async () => {
          now = await job(id);
          if (statuses.includes(now.status)) return now;
          steps = (await once('GET', `/api/jobs/${id}/steps?limit=200`)).body;
          return null;
        },
        {
          describe: () =>
            `job ${id} is ${statuses.join(' or ')}: ${JSON.stringify(now)}, ${JSON.stringify(steps)}\n${stores.log().slice(-6_000)}`,
          deadlineMs: 60_000,
        },
      );
    },
    async approveAll(isOver) {
      while (!isOver()) {
        const { body } = await send('GET', '/api/approvals?status=pending&limit=100');
        for (const { approval_id } of isOver() ? [] : body.data) {
          const { status } = await send('POST', `/api/approvals/${approval_id}/approve`, {});
          expect([200, 409]).toContain(status);
        }
        await new Promise((resolve) => setTimeout(resolve, rounds(150, 50)));
      }
    },
    async untilAllEnded(deadlineMs = 120_000) {
      await waitFor(
        async () => {
          const rows = await stores.sql(
            `SELECT count(*) AS n FROM jobs
             WHERE due_at IS NOT NULL AND organization_id = '${organization}'`,
          );
          return Number(rows[0]?.['n']) === 0;
        },
        { describe: 'every job has ended', deadlineMs },
      );
    },
    async remember() {
      // Read first: what is on record then has been executed before.
      const steps = await recordedSteps();
      for (const [line, count] of executions()) {
        const step = line.slice(0, line.lastIndexOf(' '));
        if (steps.has(step) && !recorded.has(step)) recorded.set(step, count);
      }
    },
    async expectRecordedOnce() {
      const keys = new Map<string, string>();
      for (const [line, count] of executions()) {
        const cut = line.lastIndexOf(' ');
        const [step, key] = [line.slice(0, cut), line.slice(cut + 1)];
        expect(keys.get(step) ?? key, `the idempotency key of ${step}`).toBe(key);
        keys.set(step, key);
        if (recorded.has(step)) expect(count, `executions of ${step}`).toBe(recorded.get(step));
      }
      expect(new Set(keys.values()).size, 'idempotency keys').toBe(keys.size);
    },
    leave() {
      // An executor whose platform was killed writes until it notices that.
      rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** One process on SQLite, which is started again whenever it is found dead. */
async function openEmbedded(): Promise<DurableStores> {
  const dataDir = mkdtempSync(join(tmpdir(), 'skillwright-durable-data-'));
  const start = () =>
    startProcess(dataDir, {
      EXECUTORS: '1',
      RETRY_BACKOFF_MS: '10',
      SKILLS_DIR: durableSkills,
    });
  let restarts = 0;
  let isOver = false;
  let isUp = true;
  let running = await start();
  const watching = (async () => {
    for (;;) {
      await running.exit;
      if (isOver) return;
      isUp = false;
      restarts += 1;
      running = await start();
      isUp = true;
    }
  })();
  return {
    url: () => running,
    log: () => running.output(),
    restarts: () => restarts,
    async sql(text) {
      // A start needs the database for itself.
      await waitFor(() => isUp, { describe: 'the platform is up', deadlineMs: 60_000 });
      const store = new DatabaseSync(join(dataDir, 'skillwright.db'), { readOnly: true });
      try {
        return store.prepare(text).all() as Row[];
      } finally {
        store.close();
      }
    },
    async kill() {
      const { exit } = running;
      running.signal('SIGKILL');
      await exit;
    },
    async close() {
      isOver = true;
      running.signal('SIGKILL');
      await watching;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Two workers, one of which takes requests, each started again whenever it is found dead. */
async function openCluster(): Promise<DurableStores> {
  const cluster = await startCluster({
    api: 0,
    workers: 0,
    schedulers: 0,
    also: ['api,worker,scheduler', 'worker,scheduler'],
    skillsDir: durableSkills,
    environment: { JOB_LEASE_MS: String(leaseMs) },
  });
  // Tests look into it dozens of times a second, and its server is not killed.
  const pool = new pg.Pool({ connectionString: cluster.databaseUrl, max: 2 });
  pool.on('error', () => {});
  let restarts = 0;
  let isOver = false;
  const watching = cluster.processes.map(async (process: ClusterProcess) => {
    for (;;) {
      await process.exited;
      if (isOver) return;
      restarts += 1;
      // It may be killed while it starts.
      await process.start().catch(() => undefined);
    }
  });
  const api = () => cluster.of('api')[0] as ClusterProcess;
  let turn = 0;
  return {
    url: () => api().client,
    log: () => cluster.processes.map((process) => process.log().slice(-2_000)).join('\n'),
    restarts: () => restarts,
    sql: async (text) => (await pool.query(text)).rows,
    async kill(role) {
      turn += 1;
      const victim = role === 'api' ? api() : (cluster.of('worker')[turn % 2] as ClusterProcess);
      await waitFor(() => !victim.hasExited(), { describe: 'the victim lives' });
      await victim.kill();
    },
    async close() {
      isOver = true;
      await pool.end();
      await cluster.close();
      await Promise.allSettled(watching);
    },
  };
}
