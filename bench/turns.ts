/**
 * What a loud organization costs a quiet one: with all slots taken, with a long queue, and while that queue is
 * cancelled. And how long a batch of a thousand items takes to be accepted, and how soon the next job begins at a limit.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { withCluster, withStores } from './cluster-processes.ts';
import { type Figure, lessIsBetter } from './figures.ts';
import { median, pace, percentile } from './load.ts';
import { createKey, withServer } from './server.ts';
import { echo, warmUp } from './throughput.ts';

/** More than the slots of a process, and as long as the measurement at least. */
const longRuns = 150;
const longRunMs = 60_000;
const newOrganizations = 100;
const batchItems = 1_000;
const batches = 20;
type Platform = Parameters<typeof warmUp>[0];
/** Places at a limit, and what is measured of the jobs that wait there. */
const places = 10;
const limitedRunMs = 20;
const limitedSeconds = 10;
const probe = { perSecond: 20, seconds: 10 };

/** In one process; about two minutes with 100,000 jobs that wait. */
export function measureTurns(waiting: number): Promise<Figure[]> {
  const batchBounds = { floor: 100, goal: 40 };
  return withServer('ours', async (server) => [
    await limitOf(server, waiting),
    ...(await turnsOf(server, waiting, batchBounds)),
  ]);
}

/** In a process of each kind, on PostgreSQL and Redis. */
export function measureClusterTurns(waiting: number): Promise<Figure[]> {
  const batchBounds = { floor: 250, goal: 120 };
  return withStores((stores) =>
    withCluster('ours', stores, async (cluster) => [
      await limitOf(cluster, waiting),
      ...(await turnsOf(cluster, waiting, batchBounds)),
    ]),
  );
}

async function turnsOf(
  platform: Platform,
  waiting: number,
  batchBounds: { floor: number; goal: number },
): Promise<Figure[]> {
  await warmUp(platform);
  const quiet = { ...platform, headers: await headersOf(platform, 'quiet') };
  const accepted = { ...probe, status: 202 };
  const aloneMs = percentile(await pace(echo(quiet), accepted), 0.99);
  await fillSlots(platform);
  const beside = await pace(echo(quiet, { prefer: 'wait=30' }), { ...probe, status: 200 });
  const batchMs = await fillQueue(platform, waiting);
  const firsts: number[] = [];
  for (let n = 0; n < newOrganizations; n++) firsts.push(await firstJobMs(platform, `new-${n}`));
  const cancelling = cancelAll(platform);
  const meanwhile = await pace(echo(quiet), accepted);
  await cancelling;
  return [
    milliseconds('echo beside runs of 60 s in all slots, p99', percentile(beside, 0.99), {
      ...{ floor: 500, goal: 50 },
    }),
    milliseconds(
      `start of the first job of an organization beside ${waiting} waiting, p99`,
      percentile(firsts, 0.99),
      { floor: 1_000, goal: 200 },
    ),
    milliseconds(`batch of ${batchItems} items, p50`, batchMs, batchBounds),
    lessIsBetter(
      `accept beside the cancellation of ${waiting} jobs, p99, as a multiple of that alone`,
      percentile(meanwhile, 0.99) / aloneMs,
      { floor: 3, goal: 1.5, unit: '×' },
    ),
  ];
}

/** From the end of a run to the start of the next one that has its place, in the order in which both are on record. */
async function limitOf(platform: Platform, waiting: number): Promise<Figure> {
  const limited = { ...platform, headers: await headersOf(platform, 'limited') };
  await send(limited, '/api/agents/default/queue', { max_concurrency: places }, 'PUT');
  await fillQueue(limited, waiting, limitedRunMs);
  const from = Date.now();
  await pause(limitedSeconds * 1_000);
  const jobs = await endedJobs(limited, from);
  await cancelAll(limited);
  const starts = jobs.map((one) => Date.parse(one.started_at)).toSorted((a, b) => a - b);
  const ends = jobs.map((one) => Date.parse(one.finished_at)).toSorted((a, b) => a - b);
  const gaps = starts.slice(places).map((start, i) => start - (ends[i] as number));
  return milliseconds(
    `start of the next job at a limit of ${places} with ${waiting} waiting, p99`,
    percentile(gaps, 0.99),
    { floor: 20, goal: 5 },
  );
}

/** All jobs that ended from a moment on. */
async function endedJobs({ url, headers }: Platform, from: number): Promise<EndedJob[]> {
  const ended: EndedJob[] = [];
  for (let offset = 0; ; offset += pageJobs) {
    const query = `status=completed&include=timing&limit=${pageJobs}&offset=${offset}`;
    const read = await fetch(`${url}/api/jobs?${query}`, { headers });
    const { data } = (await read.json()) as { data: EndedJob[] };
    ended.push(...data.filter(({ started_at }) => Date.parse(started_at) >= from));
    if (data.length < pageJobs) return ended;
  }
}

function milliseconds(name: string, value: number, owed: { floor: number; goal: number }): Figure {
  return lessIsBetter(name, value, { ...owed, unit: 'ms' });
}

async function headersOf({ url }: Platform, organization: string) {
  const key = await createKey(url, organization);
  return { 'content-type': 'application/json', 'x-api-key': key };
}

/** Of a page of a list. */
const pageJobs = 100;

interface EndedJob {
  readonly started_at: string;
  readonly finished_at: string;
}

interface Answer {
  readonly job_id: string;
  readonly done: boolean;
  readonly next: string | null;
}

async function send(
  { url, headers }: Pick<Platform, 'url' | 'headers'>,
  path: string,
  body: object,
  method = 'POST',
): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    ...{ method, headers, body: JSON.stringify(body) },
  });
  const answer = (await response.json()) as Answer;
  if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

const waitOf = (ms: number) => ({ skill: 'util/v1.0/wait', input: { ms } });

async function fillSlots(server: Platform): Promise<void> {
  await send(server, '/api/batches', {
    items: Array.from({ length: longRuns }, () => waitOf(longRunMs)),
  });
  await pause(2_000);
}

/** The median of what a batch took. */
async function fillQueue(server: Platform, waiting: number, runMs = longRunMs): Promise<number> {
  const taken: number[] = [];
  const items = Array.from({ length: batchItems }, () => waitOf(runMs));
  for (let sent = 0; sent < Math.max(waiting, batches * batchItems); sent += batchItems) {
    const begun = performance.now();
    await send(server, '/api/batches', { items });
    taken.push(performance.now() - begun);
  }
  return median(taken);
}

/** From the request to the start that the job has on record. */
async function firstJobMs(server: Platform, organization: string): Promise<number> {
  const headers = { ...(await headersOf(server, organization)), prefer: 'wait=30' };
  const begun = Date.now();
  const job = await send({ ...server, headers }, '/api/util/v1.0/echo', { text: 'first' });
  const read = await fetch(`${server.url}/api/jobs/${job.job_id}`, { headers });
  const { started_at } = (await read.json()) as { started_at: string };
  return Date.parse(started_at) - begun;
}

async function cancelAll(server: Platform): Promise<void> {
  let after: string | null = null;
  do {
    const answer: Answer = await send(server, '/api/jobs/cancel', {
      ...{ skill_name: 'wait', status: 'queued' },
      ...(after !== null && { after }),
    });
    if (answer.done) return;
    after = answer.next;
  } while (after !== null);
}
