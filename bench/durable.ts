/**
 * Runs that wait: what a recorded step costs, what waiting jobs cost, how soon a run goes on. The many
 * waiting jobs of a store are recorded directly, copies of one that the server made.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { waitFor } from '../test/support/wait-for.ts';
import { withCluster, withStores } from './cluster-processes.ts';
import { type Figure, lessIsBetter, round } from './figures.ts';
import { median, percentile } from './load.ts';
import { cpuMs, residentMiB, startServer, temporaryDirectory, withServer } from './server.ts';
import { storeJobs } from './stored-jobs.ts';

const environment = {
  SKILLS_DIR: join(import.meta.dirname, '../test/fixtures/skills/durable'),
};
const stepsTimed = 1_000;
const runsTimed = 5;
const eventsTimed = 200;
const dayMs = 24 * 3_600_000;
const settleMs = 8_000;
const idleSeconds = 20;
/** Requests at once while jobs are accepted. */
const atOnce = 50;
const allAwakeDeadlineMs = 120_000;

interface Client {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface DurableOptions {
  /** Jobs that wait in the full store. */
  readonly waits: number;
  /** Sleeps that are due in the same second. */
  readonly sleeps: number;
}

export async function measureDurable({ waits, sleeps }: DurableOptions): Promise<Figure[]> {
  const inOneProcess = await withServer(
    'ours',
    async (server) => [...(await stepFigures(server)), ...(await eventFigures(server))],
    environment,
  );
  const due = await withServer('ours', (server) => sleepFigure(server, sleeps), environment);
  return [...inOneProcess, due, ...(await waitingFigures(waits))];
}

/** The cluster's part: what a recorded step costs with a database and a queue of their own. */
export async function measureClusterSteps(): Promise<Figure> {
  return await withStores((stores) =>
    withCluster(
      'ours',
      stores,
      async (cluster) => {
        const { each } = await timedSteps(cluster);
        return lessIsBetter('overhead of a recorded step, cluster, p50', each, {
          ...{ floor: 6, goal: 4, unit: 'ms' },
        });
      },
      { environment },
    ),
  );
}

async function stepFigures(client: Client): Promise<Figure[]> {
  const { each, all } = await timedSteps(client);
  return [
    lessIsBetter('overhead of a recorded step, p50', each, { floor: 2, goal: 1, unit: 'ms' }),
    lessIsBetter(`${stepsTimed} steps in one job`, all / 1000, { floor: 2, goal: 1, unit: 's' }),
  ];
}

/** The middle one of some runs: p50 of a step, and the time of all steps. */
async function timedSteps(client: Client): Promise<{ each: number; all: number }> {
  const runs: { each: number; all: number }[] = [];
  // The first warms up.
  for (let i = 0; i <= runsTimed; i += 1) {
    const { output } = await run(client, 'timed', { steps: stepsTimed });
    const { each, all } = output as { each: number[]; all: number };
    if (i > 0) runs.push({ each: percentile(each, 0.5), all });
  }
  return { each: median(runs.map((one) => one.each)), all: median(runs.map((one) => one.all)) };
}

/** From the request of the event to the next line of a run that had been unloaded. */
async function eventFigures(client: Client): Promise<Figure[]> {
  const samples: number[] = [];
  for (let i = 0; i < eventsTimed; i += 1) {
    const key = `key-${i}`;
    const id = await start(client, 'hear', { key });
    await untilStatus(client, id, 'waiting');
    // As long as a run that waits takes to be unloaded, and a little of chance.
    await pause(20 + (i % 10));
    const sent = Date.now();
    await post(client, '/api/events', { event: 'word', key, data: null });
    const { at } = (await untilStatus(client, id, 'completed'))['output'] as { at: number };
    samples.push(at - sent);
  }
  return [
    lessIsBetter("event to the resumed run's next line, p50", percentile(samples, 0.5), {
      ...{ floor: 15, goal: 8, unit: 'ms' },
    }),
    lessIsBetter("event to the resumed run's next line, p99", percentile(samples, 0.99), {
      ...{ floor: 60, goal: 30, unit: 'ms' },
    }),
  ];
}

/** From a second in which many sleeps end to the end of the last of their runs. */
async function sleepFigure(client: Client, count: number): Promise<Figure> {
  // More than it takes to accept them all.
  const until = Date.now() + 10_000 + count * 4;
  for (let begun = 0; begun < count; begun += atOnce) {
    const some = Math.min(atOnce, count - begun);
    await Promise.all(
      Array.from({ length: some }, (_, i) =>
        start(client, 'nap', { until: until + ((begun + i) % 1000) }),
      ),
    );
  }
  await waitFor(async () => (await countOf(client, 'waiting')) === count, {
    describe: 'all of them sleep',
    deadlineMs: allAwakeDeadlineMs,
  });
  if (Date.now() > until) throw new Error('The first sleeps ended before the last had begun.');
  await pause(until - Date.now());
  await waitFor(async () => (await countOf(client, 'completed')) >= count, {
    describe: 'all of them are awake',
    deadlineMs: allAwakeDeadlineMs,
    everyMs: 50,
  });
  return lessIsBetter(
    `${count} sleeps due in the same second: all resumed and completed`,
    (Date.now() - until) / 1000,
    { floor: 5, goal: 3, unit: 's' },
  );
}

/** A store with many waiting jobs beside one with a single one. */
async function waitingFigures(count: number): Promise<Figure[]> {
  const [few, many] = [temporaryDirectory(), temporaryDirectory()];
  try {
    await acceptWaiting(few);
    const pattern = await acceptWaiting(many);
    const begun = performance.now();
    storeJobs(many, pattern, count, { job: 'waiting', conversation: 'active' });
    console.log(`stored ${count} waiting jobs in ${round((performance.now() - begun) / 1000)} s`);
    const [before, after] = [await idle(few), await idle(many)];
    return [
      lessIsBetter(`${count} waiting jobs: more resident memory`, after.memory - before.memory, {
        ...{ floor: 20, goal: 5, unit: 'MiB' },
      }),
      lessIsBetter(`${count} waiting jobs: more idle CPU, of a core`, after.share - before.share, {
        ...{ floor: 0.5, goal: 0.1, unit: '%' },
      }),
    ];
  } finally {
    for (const directory of [few, many]) rmSync(directory, { recursive: true, force: true });
  }
}

/** Leaves a job that sleeps for most of a year; all copies of it are due later than today. */
async function acceptWaiting(dataDir: string) {
  const server = await startServer('ours', dataDir, environment);
  try {
    const jobId = await start(server, 'nap', { until: Date.now() + 300 * dayMs });
    const { conversation_id } = await untilStatus(server, jobId, 'waiting');
    return { jobId, conversationId: conversation_id as string };
  } finally {
    await server.stop();
  }
}

async function idle(dataDir: string): Promise<{ memory: number; share: number }> {
  const server = await startServer('ours', dataDir, environment);
  try {
    await pause(settleMs);
    const before = cpuMs(server.pid);
    await pause(idleSeconds * 1000);
    const share = (cpuMs(server.pid) - before) / (10 * idleSeconds);
    return { memory: residentMiB(server.pid), share };
  } finally {
    await server.stop();
  }
}

type Body = Readonly<Record<string, unknown>>;

async function post({ url, headers }: Client, path: string, body: unknown, more = {}) {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { ...headers, ...more },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Body;
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  return answer;
}

async function get({ url, headers }: Client, path: string): Promise<Body> {
  return (await (await fetch(`${url}${path}`, { headers })).json()) as Body;
}

async function start(client: Client, skill: string, input: unknown): Promise<string> {
  return (await post(client, `/api/durable/v1.0/${skill}`, input))['job_id'] as string;
}

async function run(client: Client, skill: string, input: unknown): Promise<Body> {
  const job = await post(client, `/api/durable/v1.0/${skill}`, input, { prefer: 'wait=60' });
  if (job['status'] !== 'completed')
    throw new Error(`It has not completed: ${JSON.stringify(job)}`);
  return job;
}

async function untilStatus(client: Client, id: string, status: string): Promise<Body> {
  return await waitFor(
    async () => {
      const job = await get(client, `/api/jobs/${id}`);
      return job['status'] === status ? job : null;
    },
    { describe: `job ${id} is ${status}`, everyMs: 5 },
  );
}

async function countOf(client: Client, status: string): Promise<number> {
  return (await get(client, `/api/jobs?limit=1&skill_name=nap&status=${status}`))[
    'total'
  ] as number;
}
