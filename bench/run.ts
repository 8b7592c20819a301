/**
 * `npm run bench`: measures the product beside the bare ceiling (`ceiling.ts`), in one run, on one
 * machine, in turns, and prints one table with what is owed. Everything is bounded in count and
 * time; the servers listen on 127.0.0.1 and keep their data in temporary directories.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { clusterParts, measureCluster } from './cluster.ts';
import { measureConsole } from './console.ts';
import { measureDurable } from './durable.ts';
import { type Figure, lessIsBetter, ofCeiling, round, table } from './figures.ts';
import { measureIdle } from './idle.ts';
import { median, pace, percentile } from './load.ts';
import { measureMcp } from './mcp.ts';
import { measureMemories } from './memories.ts';
import { measureMemorySearches } from './memory-searches.ts';
import { measureRecall } from './recall.ts';
import { measureTicks } from './schedules.ts';
import {
  cpuMs,
  measureColdStart,
  residentMiB,
  type Subject,
  startServer,
  temporaryDirectory,
  withServer,
} from './server.ts';
import { storeJobs } from './stored-jobs.ts';
import { measureThinking } from './thinking.ts';
import { echo, measureTurn, type Turn, warmUp } from './throughput.ts';
import { measureTurns } from './turns.ts';
import { webhookFigures } from './webhooks.ts';

const everyPart =
  'throughput,latency,idle,start,stored,webhooks,ticks,memories,searches,recall,thinking,console,durable,mcp,turns';

const help = `npm run bench -- [options]

  --only <parts>   of: throughput, latency, idle, start, stored, webhooks, ticks, memories,
                   searches, recall, thinking, console, durable, mcp, turns (comma-separated; default
                   all)
  --cluster        an api, a worker and a scheduler process on PostgreSQL and Redis, which it
                   starts, beside the ceiling of that shape; --only then knows throughput,
                   latency, workers, queued, durable, turns
  --queued <n>     jobs in the cluster's long queue, over 100000 (default 1000000)
  --rounds <n>     turns of ceiling and product (default 3)
  --seconds <n>    of load in each turn (default 10)
  --stored <n>     jobs in the full store (default 1000000)
  --schedules <n>  schedules due in one minute (default 10000)
  --memories <n>   memories of one agent (default 100000)
  --waiting <n>    conversations that wait for a model at once (default 500)
  --waits <n>      jobs that wait in the full store, and for a slot (default 100000)
  --sleeps <n>     sleeps due in the same second (default 10000)
  --ceiling        the ceiling alone
  --explain        instead of all that: what PostgreSQL reads for each question, in a table
  --record         append the table to bench/RESULTS.md; with --explain, write docs/queries.md
`;

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    cluster: { type: 'boolean', default: false },
    queued: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '10' },
    stored: { type: 'string', default: '1000000' },
    schedules: { type: 'string', default: '10000' },
    memories: { type: 'string', default: '100000' },
    waiting: { type: 'string', default: '500' },
    waits: { type: 'string', default: '100000' },
    sleeps: { type: 'string', default: '10000' },
    ceiling: { type: 'boolean', default: false },
    explain: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (options.help) {
  console.log(help);
  process.exit();
}

const wholeRunDeadlineMs = 20 * 60 * 1000;
setTimeout(() => {
  console.error('The bench took too long and was given up.');
  process.exit(1);
}, wholeRunDeadlineMs).unref();

if (options.explain) {
  const { explain } = await import('./explain.ts');
  const size = { jobs: Number(options.stored), memories: Number(options.memories) };
  const file = join(import.meta.dirname, '../docs/queries.md');
  process.exit((await explain(size, options.record ? file : null)) ? 0 : 1);
}

const parts = new Set((options.only ?? (options.cluster ? clusterParts : everyPart)).split(','));
const rounds = Number(options.rounds);
const loadSeconds = Number(options.seconds);
const settleMs = 5_000;
/** Of each kind of question. */
const memorySeconds = 4;

const figures: Figure[] = [];
const notes: string[] = [];
// The program as a later start runs it; one without a bundle would make it while it is measured.
execFileSync(process.execPath, [join(import.meta.dirname, '../scripts/bundle.ts')]);
await noteOtherPrograms();
if (options.cluster) {
  const measured = await measureCluster({
    parts,
    rounds,
    seconds: loadSeconds,
    queued: Number(options.queued),
    waits: Number(options.waits),
    isCeilingAlone: options.ceiling,
  });
  figures.push(...measured.figures);
  notes.push(...measured.notes);
} else await measureOneProcess();
report();

async function measureOneProcess(): Promise<void> {
  if (parts.has('throughput')) await throughput();
  if (!options.ceiling) {
    if (parts.has('latency')) await latency();
    if (parts.has('idle')) figures.push(...(await measureIdle()));
    if (parts.has('start')) await coldStart();
    if (parts.has('stored')) await stored(Number(options.stored));
    if (parts.has('webhooks')) figures.push(...(await webhookFigures()));
    if (parts.has('ticks')) figures.push(...(await measureTicks(Number(options.schedules))));
    if (parts.has('memories')) {
      figures.push(...(await measureMemories(Number(options.memories), memorySeconds)));
    }
    if (parts.has('searches')) {
      figures.push(...(await measureMemorySearches(Number(options.memories))));
    }
    if (parts.has('recall')) figures.push(...(await measureRecall()));
    if (parts.has('console')) figures.push(...(await measureConsole()));
    if (parts.has('mcp')) figures.push(...(await measureMcp()));
    if (parts.has('turns')) figures.push(...(await measureTurns(Number(options.waits))));
    if (parts.has('durable')) {
      const size = { waits: Number(options.waits), sleeps: Number(options.sleeps) };
      figures.push(...(await measureDurable(size)));
    }
    if (parts.has('thinking')) figures.push(...(await measureThinking(Number(options.waiting))));
  }
}

async function turn(subject: Subject): Promise<Turn> {
  return await withServer(subject, (server) =>
    measureTurn(
      subject,
      {
        ...server,
        cpuMs: () => ({ server: cpuMs(server.pid) }),
        residentMiB: () => residentMiB(server.pid),
      },
      loadSeconds,
    ),
  );
}

async function throughput(): Promise<void> {
  const turns: Record<Subject, Turn[]> = { ceiling: [], ours: [] };
  for (let i = 0; i < rounds; i += 1) {
    turns.ceiling.push(await turn('ceiling'));
    if (!options.ceiling) turns.ours.push(await turn('ours'));
  }
  const middle = (subject: Subject, pick: (one: Turn) => number) =>
    median(turns[subject].map(pick));
  const ceiling = middle('ceiling', (one) => one.perSecond);
  const ceilingCpu = middle('ceiling', (one) => one.cpuMicroseconds);
  notes.push(`The ceiling: ${round(ceiling)} jobs/s, ${round(ceilingCpu)} µs CPU a job.`);
  if (options.ceiling) return;
  const ours = middle('ours', (one) => one.perSecond);
  const share = (100 * ours) / ceiling;
  const cpu = middle('ours', (one) => one.cpuMicroseconds);
  figures.push(
    {
      name: 'accepted and completed per second',
      ...{ value: share, shown: `${round(ours)}/s, ${round(share)} % of the ceiling` },
      ...{ floor: 60, goal: 80, unit: '%', better: 'more' as const },
    },
    ofCeiling('CPU per job, all processes', cpu, ceilingCpu, {
      ...{ floor: 2.2, goal: 1.6, unit: 'µs' },
    }),
    lessIsBetter(
      'resident memory under load',
      middle('ours', (one) => one.peakMiB),
      {
        ...{ floor: 350, goal: 250, unit: 'MiB' },
      },
    ),
  );
}

async function latency(): Promise<void> {
  const samplesOf = (subject: Subject) =>
    withServer(subject, async (server) => {
      const target = echo(server, { prefer: 'wait=10' });
      // At 50 requests a second V8 would still be compiling after minutes.
      await warmUp(server);
      await pace(target, { perSecond: 50, seconds: 5, status: 200 });
      return await pace(target, { perSecond: 50, seconds: 20, status: 200 });
    });
  const ceiling = await samplesOf('ceiling');
  const samples = await samplesOf('ours');
  figures.push(
    lessIsBetter('end to end at 50 jobs/s, p50', percentile(samples, 0.5), {
      ...{ floor: 5, goal: 3, unit: 'ms' },
    }),
    ofCeiling(
      'end to end at 50 jobs/s, p99',
      percentile(samples, 0.99),
      percentile(ceiling, 0.99),
      { floor: 1.5, goal: 1.2, unit: 'ms' },
    ),
  );
}

async function coldStart(): Promise<void> {
  const times: Record<Subject, number[]> = { ceiling: [], ours: [] };
  for (let i = 0; i < 5; i += 1) {
    times.ceiling.push(await measureColdStart('ceiling'));
    times.ours.push(await measureColdStart('ours'));
  }
  figures.push(
    ofCeiling(
      'cold start, npm start to /health',
      median(times.ours) / 1000,
      median(times.ceiling) / 1000,
      { floor: 4, goal: 2.5, unit: 's' },
    ),
  );
}

/** Compares a store of `count` jobs with an empty one, in turns. */
async function stored(count: number): Promise<void> {
  const full = temporaryDirectory();
  try {
    await seed(full, count);
    const accept: Record<Store, number[]> = { empty: [], full: [] };
    const list: Record<Store, number[]> = { empty: [], full: [] };
    for (let i = 0; i < rounds; i += 1) {
      for (const store of ['empty', 'full'] as const) {
        const dataDir = store === 'full' ? full : temporaryDirectory();
        const p99 = await storeTurn(dataDir);
        accept[store].push(p99.accept);
        list[store].push(p99.list);
        console.log(
          `${store} store: accept p99 ${round(p99.accept)} ms, list p99 ${round(p99.list)} ms`,
        );
        if (store === 'empty') rmSync(dataDir, { recursive: true, force: true });
      }
    }
    figures.push(
      comparison(`${count} jobs stored: accept p99`, accept),
      comparison(`${count} jobs stored: GET /api/jobs p99`, list),
    );
  } finally {
    rmSync(full, { recursive: true, force: true });
  }
}

type Store = 'empty' | 'full';

/** p99 in milliseconds, at a pace that leaves the machine mostly idle. */
async function storeTurn(dataDir: string): Promise<{ accept: number; list: number }> {
  const server = await startServer('ours', dataDir);
  try {
    await pause(settleMs);
    const post = echo(server);
    const get = { method: 'GET' as const, url: `${server.url}/api/jobs`, headers: server.headers };
    const accept = { perSecond: 200, status: 202 };
    const list = { perSecond: 100, status: 200 };
    await pace(post, { ...accept, seconds: 4 });
    await pace(get, { ...list, seconds: 2 });
    return {
      accept: percentile(await pace(post, { ...accept, seconds: 6 }), 0.99),
      list: percentile(await pace(get, { ...list, seconds: 6 }), 0.99),
    };
  } finally {
    await server.stop();
  }
}

async function seed(dataDir: string, count: number): Promise<void> {
  const server = await startServer('ours', dataDir);
  let job: { job_id: string; conversation_id: string };
  try {
    const { url, headers, body } = echo(server, { prefer: 'wait=10' });
    const response = await fetch(url, { method: 'POST', headers, body: body ?? null });
    job = (await response.json()) as typeof job;
    if (response.status !== 200) throw new Error(`No pattern to copy: ${JSON.stringify(job)}`);
  } finally {
    await server.stop();
  }
  const begun = performance.now();
  storeJobs(dataDir, { jobId: job.job_id, conversationId: job.conversation_id }, count);
  console.log(`stored ${count} jobs in ${round((performance.now() - begun) / 1000)} s`);
}

/** Of the turns' p99, the middle one of each store. */
function comparison(name: string, p99: Record<Store, number[]>): Figure {
  const empty = median(p99.empty);
  const full = median(p99.full);
  return {
    name,
    value: full / empty,
    shown: `${round(full)} ms, ${round(full / empty)} × the empty store's ${round(empty)} ms`,
    // "The same" leaves room for what two runs of one program differ by.
    ...{ floor: 1.5, goal: 1.1, unit: '×', better: 'less' },
  };
}

/** Figures taken while others use the machine mislead, so the record says how much they did. */
async function noteOtherPrograms(): Promise<void> {
  const times = () => cpus().map((cpu) => cpu.times);
  const idleMs = () => times().reduce((sum, time) => sum + time.idle, 0);
  const allMs = () =>
    times().reduce((sum, time) => sum + time.user + time.nice + time.sys + time.idle + time.irq, 0);
  const [idleBefore, allBefore] = [idleMs(), allMs()];
  await pause(2_000);
  const busy = 100 * (1 - (idleMs() - idleBefore) / (allMs() - allBefore));
  const note = `Before the run other programs used ${Math.round(busy)} % of the processors.`;
  notes.push(note);
  if (busy > 10) console.log(`${note} What follows says little.\n`);
}

function report(): void {
  const model = cpus()[0]?.model ?? 'unknown processor';
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const about = [
    `${new Date().toISOString().slice(0, 10)}, commit ${commit()}`,
    `${model}, ${availableParallelism()} cores, ${memory}, Linux ${release()}, Node ${process.version}`,
    `\`${['npm run bench --', ...process.argv.slice(2)].join(' ')}\``,
    ...notes,
  ].join('  \n');
  const text = figures.length > 0 ? `${about}\n\n${table(figures)}` : about;
  console.log(`\n${text}`);
  if (options.record) {
    appendFileSync(join(import.meta.dirname, 'RESULTS.md'), `\n## ${text}\n`);
  }
}

function commit(): string {
  const cwd = import.meta.dirname;
  const git = (...args: string[]) =>
    execFileSync('git', args, { encoding: 'utf8', cwd, stdio: 'pipe' }).trim();
  try {
    const changed = git('status', '--porcelain') === '' ? '' : ' with changes';
    return git('rev-parse', '--short', 'HEAD') + changed;
  } catch {
    return 'unknown';
  }
}
