/**
 * `node bench/killers.ts [--only <kinds>] [--rounds <n>] [--neighbours <n>] [name=checkout …]`: what a run that harms
 * its executor costs the runs beside it. Each round starts a pool, measures the neighbours without the killer, and
 * then has one killer begin in their midst; every run is repeated as the jobs do. Checkouts are measured in turns.
 */
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type { ExecutorPool } from '../src/core/executors/pool.ts';
import type { RunHandlers, RunOutcome, RunRequest } from '../src/core/executors/run.ts';
import { runsAlone } from '../src/core/jobs/states.ts';
import { median } from './load.ts';

const kinds = [
  'process.exit',
  'process.abort',
  'unhandled rejection',
  'exit code of its own',
  'crash',
  'crash later',
  'heap full',
  'buffers full',
  'endless loop',
  'endless loop later',
  'endless loop after its answer',
  'blocked event loop',
  'no end at its deadline',
];
const stallMs = 5_000;
/** Without anything that delays it, in ten steps. */
const neighbourMs = 800;
/** Shorter than the killer blocks the event loop. */
const neighbourTimeoutMs = 3_000;
/** Long enough for every other run. */
const patientMs = 60_000;
const displacedMax = 20;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', default: kinds.join(',') },
    rounds: { type: 'string', default: '1' },
    neighbours: { type: 'string', default: '100' },
  },
});
const checkouts = new Map([['now', join(import.meta.dirname, '..')]]);
if (positionals.length > 0) checkouts.clear();
for (const one of positionals) {
  const [name = '', directory = ''] = one.split('=');
  checkouts.set(name, resolve(directory));
}
const count = Number(options.neighbours);

/** A job from its first run to its end. */
interface Ended {
  readonly outcome: RunOutcome;
  readonly deaths: number;
  readonly displaced: number;
  readonly ms: number;
}

interface Round {
  readonly killer: Ended;
  readonly neighbours: readonly Ended[];
  readonly aloneMs: number;
  readonly executorDeaths: number;
}

const handlers: RunHandlers = { onReport() {}, onAsk: async () => true };

for (const kind of options.only.split(',')) {
  const rounds = new Map([...checkouts.keys()].map((name): [string, Round[]] => [name, []]));
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const [name, directory] of checkouts)
      rounds.get(name)?.push(await measureRound(kind, directory));
  }
  console.log(`\n${kind}, ${count} neighbours, ${options.rounds} rounds`);
  console.table(Object.fromEntries([...rounds].map(([name, all]) => [name, summary(all)])));
}

async function measureRound(kind: string, directory: string): Promise<Round> {
  const pool = await startPool(directory);
  const timeoutMs = kind === 'blocked event loop' ? neighbourTimeoutMs : patientMs;
  try {
    const alone = await Promise.all(beginNeighbours(pool, timeoutMs));
    const before = pool.stats().deaths;
    const neighbours = beginNeighbours(pool, timeoutMs);
    await pause(neighbourMs / 2);
    const killer = drive(
      pool,
      request('killer', { kind }, kind.startsWith('no end') ? 500 : patientMs),
    );
    return {
      killer: await killer,
      neighbours: await Promise.all(neighbours),
      aloneMs: median(alone.map(({ ms }) => ms)),
      executorDeaths: pool.stats().deaths - before,
    };
  } finally {
    await pool.stop(100);
  }
}

async function startPool(directory: string): Promise<ExecutorPool> {
  const { href } = pathToFileURL(join(directory, 'src/core/executors/pool.ts'));
  const { startExecutorPool }: typeof import('../src/core/executors/pool.ts') = await import(href);
  const quiet = () => {};
  const pool = await startExecutorPool({
    size: 2,
    memoryMb: 64,
    skillsDirs: [join(import.meta.dirname, 'killers')],
    env: { NODE_COMPILE_CACHE: join(directory, '.cache/killers') },
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    stallMs,
  });
  await drive(pool, request('neighbour', { ms: 10 }, patientMs));
  return pool;
}

/** The first half begins at once, the second one by one while those run. */
function beginNeighbours(pool: ExecutorPool, timeoutMs: number): Promise<Ended>[] {
  const late = count / 2;
  return Array.from({ length: count }, async (_, i) => {
    if (i >= late) await pause(((i - late) / late) * neighbourMs);
    return drive(pool, request('neighbour', { ms: neighbourMs }, timeoutMs));
  });
}

function request(skill: string, input: unknown, timeoutMs: number): RunRequest {
  const id = 'bench';
  return {
    skill: `killers/v1.0/${skill}`,
    input: JSON.stringify(input),
    context: {
      ...{ jobId: id, agentId: id, conversationId: id, organizationId: id },
      attempt: 1,
      now: 0,
    },
    timeoutMs,
  };
}

/** Repeats a run until its end is its own, as the jobs do. */
async function drive(pool: ExecutorPool, wanted: RunRequest): Promise<Ended> {
  const beganAt = performance.now();
  let deaths = 0;
  for (let displaced = 0; ; displaced++) {
    const alone = runsAlone({ deaths });
    const outcome = await pool.run(alone ? { ...wanted, alone } : wanted, handlers).outcome;
    if (outcome.kind !== 'displaced' || displaced === displacedMax)
      return { outcome, deaths, displaced, ms: performance.now() - beganAt };
    if (outcome.suspect) deaths += 1;
  }
}

function summary(rounds: readonly Round[]) {
  const all = rounds.flatMap(({ neighbours }) => neighbours);
  const { length } = rounds;
  const each = (of: (one: Ended) => boolean | number) =>
    Math.round(all.reduce((sum, one) => sum + Number(of(one)), 0) / length);
  const ratios = rounds.flatMap(({ neighbours, aloneMs }) =>
    neighbours.map(({ ms }) => ms / aloneMs),
  );
  const total = (of: (one: Ended) => boolean) => all.filter(of).length;
  return {
    killer: [
      ...new Set(rounds.map(({ killer }) => `${killer.outcome.kind} (${killer.displaced})`)),
    ].join(),
    'executors lost': Math.round(rounds.reduce((sum, one) => sum + one.executorDeaths, 0) / length),
    charged: total(({ outcome }) => outcome.kind !== 'completed' && outcome.kind !== 'displaced'),
    lost: total(({ outcome }) => outcome.kind === 'displaced'),
    repeated: each(({ displaced }) => displaced),
    suspected: each(({ deaths }) => deaths > 0),
    'ran alone': each((one) => runsAlone(one)),
    'slowed, p50': `${median(ratios).toFixed(2)} ×`,
    'slowed, most': `${Math.max(...ratios).toFixed(2)} ×`,
  };
}
