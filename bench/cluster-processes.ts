/**
 * A cluster under measurement: PostgreSQL and Redis of its own and a process for each role, with
 * what the kernel says about all of them.
 */
import { rmSync } from 'node:fs';
import { startPostgres } from '../test/support/postgres.ts';
import { startRedis } from '../test/support/redis.ts';
import {
  completedJobs,
  cpuMs,
  cpuMsAlone,
  headersFor,
  type Program,
  residentMiB,
  type Subject,
  startProgram,
  startWords,
  temporaryDirectory,
} from './server.ts';
import type { UnderLoad } from './throughput.ts';

/** Private stores that lose nothing at a power cut but Redis its last second. */
export interface Stores {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** Of the two servers. */
  readonly pids: { readonly postgres: number; readonly redis: number };
}

/** Runs `measure` with stores that are empty and gone afterwards. */
export async function withStores<T>(measure: (stores: Stores) => Promise<T>): Promise<T> {
  const postgres = await startPostgres({ durable: true, settings: { shared_buffers: '256MB' } });
  try {
    const redis = await startRedis({ persist: true, fsync: 'everysec' });
    try {
      return await measure({
        databaseUrl: await postgres.createDatabase(),
        redisUrl: redis.url,
        pids: { postgres: postgres.pid, redis: redis.pid },
      });
    } finally {
      await redis.close();
    }
  } finally {
    await postgres.close();
  }
}

type Role = 'api' | 'worker' | 'scheduler';

/** A process of the cluster, which of its role it is, and where it is reached. */
interface Member extends Program {
  readonly role: Role;
}

export interface Cluster extends UnderLoad {
  readonly members: readonly Member[];
}

/** What each runs: the ceiling has nothing to schedule. */
const wholeCluster: Readonly<Record<Subject, readonly Role[]>> = {
  ours: ['api', 'worker', 'scheduler'],
  ceiling: ['api', 'worker'],
};

/** Runs `measure` with a process for each of `roles`, the first of which is `api`. */
export async function withCluster<T>(
  subject: Subject,
  stores: Stores,
  measure: (cluster: Cluster) => Promise<T>,
  {
    roles = wholeCluster[subject],
    environment = {},
  }: { roles?: readonly Role[]; environment?: Readonly<Record<string, string>> } = {},
): Promise<T> {
  const words = subject === 'ours' ? startWords() : ['bench/cluster-ceiling.ts'];
  const directories: string[] = [];
  const members: Member[] = [];
  try {
    for (const role of roles) {
      const directory = temporaryDirectory();
      directories.push(directory);
      const program = await startProgram(words, directory, {
        DATABASE_URL: stores.databaseUrl,
        REDIS_URL: stores.redisUrl,
        ROLES: role,
        ...environment,
      });
      members.push({ ...program, role });
    }
    return await measure(await clusterOf(subject, stores, members));
  } finally {
    await Promise.all(members.map((member) => member.stop()));
    for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  }
}

async function clusterOf(
  subject: Subject,
  stores: Stores,
  members: readonly Member[],
): Promise<Cluster> {
  const url = members.find(({ role }) => role === 'api')?.url ?? '';
  const workers = members.filter(({ role }) => role === 'worker');
  const pids = [...members.map(({ pid }) => pid), ...Object.values(stores.pids)];
  return {
    members,
    url,
    headers: await headersFor(subject, url),
    async completed() {
      const counts = await Promise.all(workers.map((worker) => completedJobs(worker.url)));
      return counts.reduce((total, count) => total + count, 0);
    },
    cpuMs() {
      const parts: Record<string, number> = {};
      const add = (part: string, ms: number) => {
        parts[part] = (parts[part] ?? 0) + ms;
      };
      for (const { role, pid } of members) {
        const own = cpuMsAlone(pid);
        add(role, own);
        if (role === 'worker' && subject === 'ours') add('executors', cpuMs(pid) - own);
      }
      for (const [store, pid] of Object.entries(stores.pids)) add(store, cpuMs(pid));
      return parts;
    },
    residentMiB: () => pids.reduce((sum, pid) => sum + residentMiB(pid), 0),
  };
}
