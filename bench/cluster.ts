/**
 * `npm run bench -- --cluster`: one api, one worker and one scheduler process on PostgreSQL and
 * Redis beside the bare ceiling of the same shape (`cluster-ceiling.ts`).
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { pino } from 'pino';
import { openPostgres } from '../src/adapters/database/postgres.ts';
import { claimJobs } from '../src/core/jobs/turns/admission.store.ts';
import { type Cluster, type Stores, withCluster, withStores } from './cluster-processes.ts';
import { measureClusterSteps } from './durable.ts';
import { type Figure, lessIsBetter, ofCeiling, round } from './figures.ts';
import { flood, median, pace, percentile } from './load.ts';
import { type Pattern, queueJobs, readPattern } from './queued-jobs.ts';
import { residentMiBEach, type Subject } from './server.ts';
import { drained, echo, measureTurn, type Turn, warmUp } from './throughput.ts';
import { measureClusterTurns } from './turns.ts';

/** What of the cluster can be measured by itself. */
export const clusterParts = 'throughput,latency,workers,queued,durable,turns';

export interface ClusterOptions {
  readonly parts: ReadonlySet<string>;
  readonly rounds: number;
  readonly seconds: number;
  /** Jobs that wait for a slot beside a quiet organization. */
  readonly waits: number;
  /** Jobs in the full queue. */
  readonly queued: number;
  readonly isCeilingAlone: boolean;
}

export interface Measured {
  readonly figures: readonly Figure[];
  readonly notes: readonly string[];
}

/** Places of a worker: few, so that these are what there is too little of and not the two cores. */
const runsPerWorker = 10;
/** Runs that wait in both measurements of workers, and what each waits for. */
const runsAtOnce = 200;
const skillWaitsMs = 50;
/** More than is worked off while it is measured, and so few that memory has no reason to grow. */
const fewQueued = 100_000;
const queuedSeconds = 10;
const claimsPerSecond = 50;
/** What a worker's claims come to, many in one statement. */
const jobsPerClaim = 20;

export async function measureCluster(options: ClusterOptions): Promise<Measured> {
  const figures: Figure[] = [];
  const notes = ['PostgreSQL with fsync, Redis with AOF every second, both started by the bench.'];
  const { parts } = options;
  if (parts.has('throughput')) {
    const measured = await throughput(options);
    figures.push(...measured.figures);
    notes.push(...measured.notes);
  }
  if (!options.isCeilingAlone) {
    if (parts.has('latency')) figures.push(...(await latency()));
    if (parts.has('workers')) figures.push(await workers(options));
    if (parts.has('durable')) figures.push(await measureClusterSteps());
    if (parts.has('turns')) figures.push(...(await measureClusterTurns(options.waits)));
    if (parts.has('queued')) figures.push(...(await queued(options.queued)));
  }
  return { figures, notes };
}

async function throughput({ rounds, seconds, isCeilingAlone }: ClusterOptions): Promise<Measured> {
  const turns: Record<Subject, Turn[]> = { ceiling: [], ours: [] };
  const turn = async (subject: Subject) =>
    turns[subject].push(
      await withStores((stores) =>
        withCluster(subject, stores, (cluster) => measureTurn(subject, cluster, seconds)),
      ),
    );
  for (let i = 0; i < rounds; i += 1) {
    await turn('ceiling');
    if (!isCeilingAlone) await turn('ours');
  }
  const middle = (subject: Subject, pick: (one: Turn) => number) =>
    median(turns[subject].map(pick));
  const ceiling = middle('ceiling', (one) => one.perSecond);
  const ceilingCpu = middle('ceiling', (one) => one.cpuMicroseconds);
  const notes = [`The ceiling: ${round(ceiling)} jobs/s, ${round(ceilingCpu)} µs CPU a job.`];
  if (isCeilingAlone) return { figures: [], notes };
  const ours = middle('ours', (one) => one.perSecond);
  const share = (100 * ours) / ceiling;
  const cpu = middle('ours', (one) => one.cpuMicroseconds);
  return {
    figures: [
      {
        name: 'accepted and completed per second',
        ...{ value: share, shown: `${round(ours)}/s, ${round(share)} % of the ceiling` },
        ...{ floor: 75, goal: 90, unit: '%', better: 'more' },
      },
      ofCeiling('CPU per job, processes and stores', cpu, ceilingCpu, {
        ...{ floor: 1.3, goal: 1.15, unit: 'µs' },
      }),
    ],
    notes,
  };
}

async function latency(): Promise<Figure[]> {
  const samples = await withStores((stores) =>
    withCluster('ours', stores, async (cluster) => {
      const target = echo(cluster, { prefer: 'wait=10' });
      // At 50 requests a second V8 would still be compiling after minutes.
      await warmUp(cluster);
      await pace(target, { perSecond: 50, seconds: 5, status: 200 });
      return await pace(target, { perSecond: 50, seconds: 20, status: 200 });
    }),
  );
  return [
    lessIsBetter('end to end at 50 jobs/s, p50', percentile(samples, 0.5), {
      ...{ floor: 10, goal: 6, unit: 'ms' },
    }),
    lessIsBetter('end to end at 50 jobs/s, p99', percentile(samples, 0.99), {
      ...{ floor: 30, goal: 12, unit: 'ms' },
    }),
  ];
}

/** Jobs a second that wait 50 ms each, with 200 requests under way: two workers against one. */
async function workers({ rounds, seconds }: ClusterOptions): Promise<Figure> {
  const one: number[] = [];
  const two: number[] = [];
  for (let i = 0; i < rounds; i += 1) {
    one.push(await waitingJobsPerSecond(['api', 'worker', 'scheduler'], seconds));
    two.push(await waitingJobsPerSecond(['api', 'worker', 'worker', 'scheduler'], seconds));
    console.log(
      `one worker ${round(one[i] ?? 0)} jobs/s, two workers ${round(two[i] ?? 0)} jobs/s`,
    );
  }
  const ratio = median(two) / median(one);
  return {
    name: `two workers against one, ${skillWaitsMs} ms of waiting, ${runsAtOnce} at once, ${runsPerWorker} in each`,
    value: ratio,
    shown: `${round(ratio)} × (${round(median(two))}/s against ${round(median(one))}/s)`,
    ...{ floor: 1.8, goal: 1.95, unit: '×', better: 'more' },
  };
}

async function waitingJobsPerSecond(
  roles: readonly ('api' | 'worker' | 'scheduler')[],
  seconds: number,
): Promise<number> {
  const environment = {
    SKILLS_DIR: join(import.meta.dirname, '../test/fixtures/skills/good'),
    WORKER_CONCURRENCY: String(runsPerWorker),
  };
  const measure = async (cluster: Cluster) => {
    const target = {
      ...echo(cluster, { prefer: 'wait=30' }),
      url: `${cluster.url}/api/good/v1.0/wait`,
      body: JSON.stringify({ ms: skillWaitsMs }),
    };
    const warmUp = await flood(target, 3, runsAtOnce);
    const before = await drained(cluster, warmUp.accepted);
    const begun = performance.now();
    const load = await flood(target, seconds, runsAtOnce);
    if (load.refused > 0) throw new Error(`${load.refused} requests were refused.`);
    const jobs = (await drained(cluster, before + load.accepted)) - before;
    return jobs / ((performance.now() - begun) / 1000);
  };
  return await withStores((stores) => withCluster('ours', stores, measure, { roles, environment }));
}

/** What working on a long queue takes, beside what working on a short one does. */
async function queued(count: number): Promise<Figure[]> {
  if (!(count > fewQueued)) throw new Error(`--queued: more than ${fewQueued}.`);
  return await withStores(async (stores) => {
    const pattern = await acceptOne(stores);
    await queue(stores, pattern, fewQueued);
    const few = await workOff(stores);
    await queue(stores, pattern, count - fewQueued);
    const many = await workOff(stores);
    const shown = Object.entries(many.peakMiB).map(
      ([name, peak]) => `${name} ${round(peak)} (${round(few.peakMiB[name] ?? 0)})`,
    );
    const growth = Object.entries(many.peakMiB).map(
      ([name, peak]) => peak / (few.peakMiB[name] ?? peak),
    );
    const most = Math.max(...growth);
    return [
      {
        name: `${count} jobs queued: memory, most that a process grows`,
        value: most,
        shown: `${round(most)} × of that with ${fewQueued}; MiB: ${shown.join(', ')}`,
        // "Bounded" leaves room for what two runs of one program differ by.
        ...{ floor: 1.5, goal: 1.25, unit: '×', better: 'less' },
      },
      lessIsBetter(
        `${count} jobs queued: claim of ${jobsPerClaim} while ${round(many.perSecond)}/s are worked on, p99`,
        percentile(many.claimsMs, 0.99),
        { floor: 20, goal: 10, unit: 'ms' },
      ),
    ];
  });
}

/** A job that no worker claims; an earlier worker has registered the skills. */
async function acceptOne(stores: Stores): Promise<Pattern> {
  const accept = async (cluster: Cluster) => {
    const { url, headers, body } = echo(cluster);
    const response = await fetch(url, { method: 'POST', headers, body: body ?? null });
    const job = (await response.json()) as { job_id: string; conversation_id: string };
    if (response.status !== 202) throw new Error(`No pattern to copy: ${JSON.stringify(job)}`);
    const names = { jobId: job.job_id, conversationId: job.conversation_id };
    return await readPattern(stores.databaseUrl, names);
  };
  await withCluster('ours', stores, async () => {});
  return await withCluster('ours', stores, accept, { roles: ['api'] });
}

async function queue(stores: Stores, pattern: Pattern, count: number): Promise<void> {
  const begun = performance.now();
  await queueJobs(stores.databaseUrl, pattern, count);
  console.log(`queued ${count} jobs in ${round((performance.now() - begun) / 1000)} s`);
}

interface WorkedOff {
  readonly perSecond: number;
  /** By process: the most that it held. */
  readonly peakMiB: Readonly<Record<string, number>>;
  readonly claimsMs: readonly number[];
}

/** Lets the cluster work for some seconds on what is queued, and claims some of it here. */
async function workOff(stores: Stores): Promise<WorkedOff> {
  const worked = await withCluster('ours', stores, async (cluster) => {
    const peakMiB: Record<string, number> = {};
    const watch = setInterval(() => {
      for (const [name, now] of memoryOf(cluster, stores)) {
        peakMiB[name] = Math.max(peakMiB[name] ?? 0, now);
      }
    }, 250);
    try {
      await pause(1_000);
      const before = await cluster.completed();
      const begun = performance.now();
      const claimsMs = await claimSome(stores);
      const jobs = (await cluster.completed()) - before;
      return { peakMiB, claimsMs, perSecond: jobs / ((performance.now() - begun) / 1000) };
    } finally {
      clearInterval(watch);
    }
  });
  console.log(
    `worked on ${round(worked.perSecond)} jobs/s, claim p50 ${round(percentile(worked.claimsMs, 0.5))} ms, ` +
      `p99 ${round(percentile(worked.claimsMs, 0.99))} ms, MiB ${JSON.stringify(worked.peakMiB)}`,
  );
  if (worked.perSecond < 1) throw new Error('The cluster does not work on what is queued.');
  return worked;
}

function memoryOf({ members }: Cluster, { pids }: Stores): [string, number][] {
  const ours = members.flatMap(({ role, pid }) => {
    const [own = 0, ...children] = residentMiBEach(pid);
    const most: [string, number][] = [[role, own]];
    return children.length > 0 ? [...most, ['executor', Math.max(...children)] as const] : most;
  }) as [string, number][];
  return [...ours, ['redis', residentMiBEach(pids.redis)[0] ?? 0]];
}

/** The product's own claim, as it stands in its store, from this process; milliseconds with commit. */
async function claimSome({ databaseUrl }: Stores): Promise<number[]> {
  const database = await openPostgres(databaseUrl, pino({ level: 'silent' }));
  try {
    const ids = await newestQueued(databaseUrl, queuedSeconds * claimsPerSecond * jobsPerClaim);
    const samples: number[] = [];
    const begun = performance.now();
    for (let i = 0; i < queuedSeconds * claimsPerSecond; i += 1) {
      const wait = begun + (i * 1000) / claimsPerSecond - performance.now();
      if (wait > 0) await pause(wait);
      const some = ids.slice(i * jobsPerClaim, (i + 1) * jobsPerClaim);
      const asked = performance.now();
      // The lease outlives the bench: so that no sweep takes these for lost.
      const lease = Date.now() + 24 * 3600 * 1000;
      const claimed = await database.write((tx) =>
        claimJobs(tx, some, { by: 1, now: Date.now(), leaseUntil: lease }),
      );
      samples.push(performance.now() - asked);
      if (claimed.length === 0) throw new Error('Nothing was claimed.');
    }
    return samples;
  } finally {
    await database.close();
  }
}

/** From all over the younger half, which the workers do not come to. */
async function newestQueued(url: string, count: number): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string }>(
      `SELECT id FROM (SELECT id FROM jobs WHERE status = 'queued' ORDER BY id DESC
         LIMIT (SELECT count(*) / 2 FROM jobs WHERE status = 'queued')) AS young
       ORDER BY random() LIMIT $1`,
      [count],
    );
    return rows.map(({ id }) => id);
  } finally {
    await client.end();
  }
}
