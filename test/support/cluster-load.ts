/** A cluster under constant load: what every test of faults begins with and counts at the end. */
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import type { EffectInput } from '../fixtures/skills/staged/effect.ts';
import { type Account, account, nothingAmiss, readEffects, readJobs } from './accounts.ts';
import type { Cluster, ClusterOptions } from './cluster.ts';
import { expectConsistent } from './consistency.ts';
import { type Attempt, type Load, type LoadOptions, outcomesOf, startLoad } from './load.ts';
import { recordEvents } from './outbox.ts';
import { isInstalled } from './shared-servers.ts';
import { rounds } from './soak.ts';
import { dataDirectory } from './staged.ts';
import { newTenant, type Tenant } from './tenant.ts';
import { waitFor } from './wait-for.ts';

/** SKILLS_DIR with `effect` and `play`. */
export const stagedSkillsDir = join(import.meta.dirname, '../fixtures/skills/staged');

export const effect = 'staged/v1.0/effect';

/**
 * Executions a second while something fails. Each takes 20 ms of the processor, so there are few of them on
 * each change; no fault needs more.
 */
export const loadPerSecond = rounds(4, 30);

/** How many the load begins in so long a time. */
export const begunIn = (ms: number) => Math.ceil((ms / 1_000) * loadPerSecond);

/** Of a cluster whose stores or network fail. */
export const leaseMs = 3_000;

/** What a cluster is made of whose stores or network fail. */
export const twoOfEach: ClusterOptions = {
  api: 0,
  schedulers: 0,
  also: ['api,scheduler', 'api,worker'],
  skillsDir: stagedSkillsDir,
  environment: { JOB_LEASE_MS: String(leaseMs) },
};

/** For a cluster whose processes a test adds itself. */
export const noneYet: ClusterOptions = {
  api: 0,
  workers: 0,
  schedulers: 0,
  skillsDir: stagedSkillsDir,
};

/** Whether this machine has what a cluster stands on. */
export async function canRunClusters(): Promise<boolean> {
  const found = [await isInstalled('PostgreSQL'), await isInstalled('Redis')];
  return found.every(Boolean);
}

export interface ClusterLoad extends Load {
  readonly tenant: Tenant;
  /** The file that the effects are written to. */
  readonly log: string;
  /** Waits until so many more have been accepted: a moment of everything that goes on beside them. */
  acceptedMore(n: number): Promise<void>;
  /** Waits until so many more have begun to run. */
  begunMore(n: number, deadlineMs: number): Promise<void>;
  /**
   * Begins no more, waits until everything has ended, and holds what was accepted against what is
   * recorded: nothing may be amiss. The account, for what a test wants to know beside that.
   */
  settle(deadlineMs?: number): Promise<Account>;
}

export type ClusterLoadOptions = Partial<
  Pick<LoadOptions, 'perSecond' | 'giveUpMs' | 'requestTimeoutMs' | 'urls' | 'headers'>
> & {
  /** What the n-th execution does. */
  input?(n: number): Omit<EffectInput, 'log'>;
};

/** Begins load in the name of an organization of its own, on all api processes that have not ended. */
export async function loadCluster(
  cluster: Cluster,
  options: ClusterLoadOptions = {},
): Promise<ClusterLoad> {
  const { input = ordinary, ...more } = options;
  const tenant = await newTenant(apiOf(cluster).client);
  await onDatabase(cluster, (database) => recordEvents(database, tenant.organization));
  const log = join(dataDirectory(), 'effects');
  const load = startLoad({
    perSecond: loadPerSecond,
    urls: () =>
      cluster
        .of('api')
        .filter((process) => !process.hasExited())
        .map(({ url }) => url)
        // One that has never been ready has none.
        .filter((url) => url !== ''),
    key: tenant.key,
    skill: effect,
    input: (n) => ({ log, ...input(n) }) satisfies EffectInput,
    ...more,
  });
  // A test that has failed leaves nothing behind that makes the next one fail.
  onTestFinished(load.abandon);
  return {
    ...load,
    tenant,
    log,
    async acceptedMore(n) {
      const target = load.accepted.size + n;
      await waitFor(() => load.accepted.size >= target, {
        describe: () =>
          `${n} more are accepted; ${load.accepted.size - target + n} were: ${outcomesOf(load.attempts.slice(-100))}`,
        deadlineMs: 60_000,
      });
    },
    async begunMore(n, deadlineMs) {
      const begun = () => readEffects(log).filter(({ word }) => word === 'begin').length;
      const target = begun() + n;
      await waitFor(() => begun() >= target, {
        describe: () => `${n} more run; ${begun() - target + n} did`,
        deadlineMs,
        everyMs: 50,
      });
    },
    async settle(deadlineMs) {
      await load.stop();
      await cluster.untilIdle(deadlineMs);
      const made = account({
        accepted: load.accepted.keys(),
        jobs: await readJobs(cluster.sql, tenant.organization),
        effects: readEffects(log),
      });
      const about = `requests ${outcomesOf(load.attempts)}`;
      expect(load.unexpected, about).toEqual([]);
      expect(made, about).toMatchObject({ ...nothingAmiss, recorded: made.accepted });
      expect(made.accepted, about).toBeGreaterThan(0);
      await onDatabase(cluster, expectConsistent);
      return made;
    },
  };
}

/** Whether it was accepted without being held up: a command of Redis is given up after 1 s, a connection after 5. */
export function isAcceptedSoon({ outcome, ms }: Attempt): boolean {
  return outcome === 202 && ms < 4_500;
}

/**
 * Each api process accepts an execution, which runs to its end. What a process that has just started loads for its first
 * ones would else count as a delay by the fault that a test is about.
 */
export async function warmUp(cluster: Cluster): Promise<void> {
  for (const { client } of cluster.of('api')) {
    const tenant = await newTenant(client);
    const { body } = await tenant.run('util/v1.0/echo', { text: 'x' });
    await tenant.jobIn(body.job_id, 'completed');
  }
}

async function onDatabase(cluster: Cluster, use: (database: Database) => Promise<void>) {
  const database = await cluster.openDatabase();
  try {
    await use(database);
  } finally {
    await database.close();
  }
}

/** The first api process; there has to be one. */
export function apiOf(cluster: Cluster, i = 0) {
  const api = cluster.of('api')[i];
  if (api === undefined) throw new Error(`There is no api process ${i}.`);
  return api;
}

/** Waits until every api process answers `/health` so. */
export async function untilHealth(
  cluster: Cluster,
  status: number,
  deadlineMs: number,
): Promise<void> {
  for (const { name, client } of cluster.of('api')) {
    await waitFor(async () => (await client.request('GET', '/health')).status === status, {
      describe: `/health of ${name} is ${status}`,
      deadlineMs,
    });
  }
}

/** Remembers the processes; what is returned expects all of them to be there, none ended or started anew. */
export function rememberProcesses({ processes }: Cluster): () => void {
  const pids = processes.map(({ pid }) => pid);
  return () => {
    expect(processes.filter((process) => process.hasExited())).toEqual([]);
    expect(processes.map(({ pid }) => pid)).toEqual(pids);
  };
}

/** Mostly short, some that take a while, some that fail before they succeed. */
function ordinary(n: number): Omit<EffectInput, 'log'> {
  if (n % 10 === 3) return { waitMs: 1_000 };
  if (n % 10 === 7) return { failures: 1 };
  return { waitMs: 20 };
}
