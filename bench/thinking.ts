/**
 * Agents that think: what a turn of our loop costs more than one of the AI SDK alone, and what it
 * costs a process to have very many conversations wait for a slow model at once. The provider is a
 * process of its own, and so is the SDK alone.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { installTools } from '../scripts/tools.ts';
import { waitFor } from '../test/support/wait-for.ts';
import { type Figure, round } from './figures.ts';
import { median, pace, percentile, type Request } from './load.ts';
import type { ProviderOrder, ProviderReport } from './model-provider.ts';
import { cpuMs, residentMiB, type Server, withServer } from './server.ts';

/** Turns of a run; all but the last call a tool. */
const turns = 30;
const runs = 10;
const waitTurns = 3;
const apiSeconds = 10;
const apiPerSecond = 25;
const settleMs = 3_000;
const deadlineMs = 60_000;
const bytesPerMib = 1_048_576;

const overheadOwedMs = 5;
const memoryOwedMb = 300;
/** Of what the same takes without the load; two runs of one program differ by as much. */
const unharmed = { floor: 2, goal: 1.15 };

/** Measures turns, and `count` conversations that wait at once; about five minutes. */
export async function measureThinking(count: number): Promise<Figure[]> {
  const provider = await startProvider();
  try {
    return [
      ...(await turnFigures(provider)),
      ...(await waitingFigures(provider, 'holds', count)),
      ...(await waitingFigures(provider, 'drips', count)),
    ];
  } finally {
    provider.close();
  }
}

/**
 * The time between the last byte of a model's turn and the request of the next, as the provider sees
 * it. All that is done for a turn is in it, except what is done while the model still speaks: reading
 * the answer's end, recording it, running the tool, recording what it gave, asking again. The tool
 * gives back what it is given, here in an executor and there in the same process, so that all of it
 * counts as overhead and nothing is subtracted. Runs take turns, one at a time.
 */
async function turnFigures(provider: Provider): Promise<Figure[]> {
  const names = { bare: `calls-${turns}-bare`, ours: `calls-${turns}-ours` };
  const bare = await startBareLoop(provider.url);
  try {
    const gaps = await withAgents(provider, async (server) => {
      await createAgent(server, 'ours', `openai/${names.ours}`);
      const bareRun = async () => expectTurns(await bare.ask(names.bare));
      const ourRun = () => runTask(server, 'ours');
      // Both load what they need at their first run.
      await bareRun();
      await ourRun();
      await provider.order('report');
      for (let i = 0; i < runs; i += 1) {
        await bareRun();
        await ourRun();
      }
      return (await provider.order('report')).gaps;
    });
    const at = (share: number) => {
      const ours = percentile(gaps[names.ours] ?? [], share);
      const alone = percentile(gaps[names.bare] ?? [], share);
      return { value: ours - alone, shown: `${round(ours)} ms, AI SDK alone ${round(alone)} ms` };
    };
    const [p50, p99] = [at(0.5), at(0.99)];
    console.log(`a turn at p50: ${p50.shown}; at p99: ${p99.shown}`);
    return [
      atMost('overhead of a turn of an agent, p50', {
        value: p50.value,
        shown: `${round(p50.value)} ms (${p50.shown}; p99 ${round(p99.value)} ms)`,
        ...{ floor: overheadOwedMs, goal: overheadOwedMs, unit: 'ms' },
      }),
    ];
  } finally {
    bare.close();
  }
}

function expectTurns(steps: number): void {
  if (steps !== turns) throw new Error(`The SDK alone took ${steps} turns instead of ${turns}.`);
}

interface WaitTurn {
  readonly workerMb: number;
  readonly allMb: number;
  /** Of the worker, after all of them had ended. */
  readonly afterMb: number;
  readonly list: Paces;
  readonly echo: Paces;
}

/** Milliseconds, without the conversations and beside them. */
interface Paces {
  readonly alone: readonly number[];
  readonly beside: readonly number[];
}

/** In one process with its default settings: the API alone, then beside conversations, and so on. */
async function waitingFigures(
  provider: Provider,
  model: 'holds' | 'drips',
  count: number,
): Promise<Figure[]> {
  const all = await withAgents(provider, async (server) => {
    await createAgent(server, 'waiting', `openai/${model}`);
    await askApi(server, 3);
    const done: WaitTurn[] = [];
    for (let i = 0; i < waitTurns; i += 1) {
      done.push(await waitTurn(provider, server, model, count));
    }
    await expectLedger(server, count);
    return done;
  });
  const what = `${count} conversations, the model ${model}`;
  const middle = (pick: (turn: WaitTurn) => number) => median(all.map(pick));
  const memory = Math.max(...all.map((turn) => turn.workerMb));
  const tree = Math.max(...all.map((turn) => turn.allMb));
  const compared = (name: string, pick: (turn: WaitTurn) => Paces) => {
    const alone = middle((turn) => percentile(pick(turn).alone, 0.99));
    const beside = middle((turn) => percentile(pick(turn).beside, 0.99));
    const ratio = beside / alone;
    return atMost(`${what}: ${name} p99`, {
      ...{ value: ratio, shown: `${round(beside)} ms, ${round(ratio)} × ${round(alone)} ms` },
      ...{ ...unharmed, unit: '×' },
    });
  };
  return [
    atMost(`${what}: resident memory of the worker`, {
      ...{ value: memory, shown: `${round(memory)} MB, ${round(tree)} MB with its executors` },
      ...{ floor: memoryOwedMb, goal: memoryOwedMb, unit: 'MB' },
    }),
    compared('GET /api/jobs', (turn) => turn.list),
    compared('util/echo to its end', (turn) => turn.echo),
  ];
}

async function waitTurn(
  provider: Provider,
  server: Server,
  model: string,
  count: number,
): Promise<WaitTurn> {
  const alone = await askApi(server, apiSeconds);
  const jobs = await startTasks(server, count);
  await waitFor(async () => (await provider.order('report')).open === count, {
    describe: `${count} conversations wait`,
    deadlineMs,
  });
  await pause(settleMs);
  const peak = watchMemory(server.pid);
  const cpuBefore = cpuMs(server.pid);
  const begun = performance.now();
  const beside = await askApi(server, apiSeconds);
  const cpuShare = (cpuMs(server.pid) - cpuBefore) / (performance.now() - begun);
  const { workerMb, allMb } = peak.stop();
  await provider.order('release');
  await expectTokens(server, jobs);
  await pause(settleMs);
  const afterMb = workerBytes(server.pid) / 1e6;
  const p99 = (samples: readonly number[]) => `${round(percentile(samples, 0.99))} ms`;
  console.log(
    `${model}: ${round(workerMb)} MB, ${round(allMb)} MB with executors, ${round(afterMb)} MB after; ` +
      `${round(100 * cpuShare)} % CPU; list p99 ${p99(beside.list)}, alone ${p99(alone.list)}; ` +
      `echo p99 ${p99(beside.echo)}, alone ${p99(alone.echo)}`,
  );
  const list = { alone: alone.list, beside: beside.list };
  const echo = { alone: alone.echo, beside: beside.echo };
  return { workerMb, allMb, afterMb, list, echo };
}

/** Milliseconds of each of two kinds of request, asked for side by side. */
async function askApi(server: Server, seconds: number) {
  const { url, headers } = server;
  const get: Request = { method: 'GET', url: `${url}/api/jobs`, headers };
  const post: Request = {
    method: 'POST',
    url: `${url}/api/util/v1.0/echo`,
    headers: { ...headers, prefer: 'wait=10' },
    body: JSON.stringify({ text: 'The quick brown fox jumps over the lazy dog.' }),
  };
  const load = { perSecond: apiPerSecond, seconds, status: 200 };
  const [list, echo] = await Promise.all([pace(get, load), pace(post, load)]);
  return { list, echo };
}

/** Accepts `count` tasks; the ids of their jobs. */
async function startTasks(server: Server, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 1; n <= count; n += 1) {
    const job = await post(server, runTaskPath, { task: `Task ${n}` }, { 'x-agent-id': 'waiting' });
    ids.push(String(job['job_id']));
  }
  return ids;
}

/** Waits for the end of all, and holds what each counts against what its provider says: its number. */
async function expectTokens(server: Server, jobs: readonly string[]): Promise<void> {
  for (const [i, id] of jobs.entries()) {
    const task = i + 1;
    const job = await waitFor(
      async () => {
        const response = await fetch(`${server.url}/api/jobs/${id}`, { headers: server.headers });
        const found = (await response.json()) as Json;
        return found['status'] === 'queued' || found['status'] === 'active' ? null : found;
      },
      { describe: `the end of task ${task}`, deadlineMs },
    );
    const stats = job['token_stats'] as Json | null;
    const isCounted = stats?.['prompt_tokens'] === task && stats['completion_tokens'] === task;
    if (job['status'] !== 'completed' || !isCounted) {
      throw new Error(`Task ${task} ended wrong: ${JSON.stringify(job)}`);
    }
  }
}

/** Holds what the agent has used in all against the sum of what its tasks cost. */
async function expectLedger(server: Server, count: number): Promise<void> {
  const path = '/api/agents/waiting/usage';
  const response = await fetch(`${server.url}${path}`, { headers: server.headers });
  const { days } = (await response.json()) as { days: { total_tokens: number | null }[] };
  const total = days.reduce((sum, day) => sum + (day.total_tokens ?? Number.NaN), 0);
  const owed = waitTurns * count * (count + 1);
  if (total !== owed) throw new Error(`GET ${path}: ${total} tokens instead of ${owed}`);
}

/** The most that there was while it watched. */
function watchMemory(pid: number) {
  const peak = { workerMb: 0, allMb: 0 };
  const timer = setInterval(() => {
    peak.workerMb = Math.max(peak.workerMb, workerBytes(pid) / 1e6);
    peak.allMb = Math.max(peak.allMb, (residentMiB(pid) * bytesPerMib) / 1e6);
  }, 250);
  return {
    stop() {
      clearInterval(timer);
      return peak;
    },
  };
}

/** Resident memory of the one process, without its executors. */
function workerBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? Number.NaN) * 1024;
}

type Json = Readonly<Record<string, unknown>>;

const runTaskPath = '/api/agent/v1.0/run-task';

async function runTask(server: Server, agent: string): Promise<void> {
  const headers = { 'x-agent-id': agent, prefer: 'wait=60' };
  const job = await post(server, runTaskPath, { task: 'Task 1' }, headers);
  if (job['status'] !== 'completed') throw new Error(`A run failed: ${JSON.stringify(job)}`);
}

async function createAgent(server: Server, id: string, model: string): Promise<void> {
  await post(server, '/api/agents', { id, model, skills: ['util/v1.0/echo'] });
}

async function post(
  server: Server,
  path: string,
  body: object,
  more: Readonly<Record<string, string>> = {},
): Promise<Json> {
  const headers = { ...server.headers, ...more };
  const request = { method: 'POST', headers, body: JSON.stringify(body) };
  const response = await fetch(`${server.url}${path}`, request);
  const answer = await response.text();
  if (!response.ok) throw new Error(`POST ${path}: ${answer}`);
  return JSON.parse(answer) as Json;
}

/** Runs `measure` against a server on an empty store whose agents ask this provider. */
function withAgents<T>(provider: Provider, measure: (server: Server) => Promise<T>): Promise<T> {
  return withServer('ours', measure, {
    OPENAI_API_KEY: 'bench',
    OPENAI_BASE_URL: provider.url,
  });
}

interface Provider {
  readonly url: string;
  order(order: ProviderOrder): Promise<ProviderReport>;
  close(): void;
}

async function startProvider(): Promise<Provider> {
  const { greeting, ask, close } = await startBeside(import.meta.resolve('./model-provider.ts'));
  return {
    url: greeting as string,
    order: async (order) => (await ask(order)) as ProviderReport,
    close,
  };
}

async function startBareLoop(url: string) {
  await installTools('bench/tools');
  const { ask, close } = await startBeside(import.meta.resolve('./tools/bare-loop.ts'), url);
  return { ask: async (model: string) => (await ask(model)) as number, close };
}

/** A program of this folder as a child that answers each message with one; it ends with us. */
async function startBeside(file: string, ...words: readonly string[]) {
  const child = fork(fileURLToPath(file), words);
  return {
    greeting: await answerOf(child, file),
    async ask(message: string): Promise<unknown> {
      const answer = answerOf(child, file);
      child.send(message);
      return await answer;
    },
    close() {
      child.disconnect();
    },
  };
}

async function answerOf(child: ChildProcess, file: string): Promise<unknown> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    return await Promise.race([
      once(child, 'message', { signal }).then(([answer]) => answer as unknown),
      once(child, 'exit', { signal }).then(() => {
        throw new Error(`${file} ended before it had answered.`);
      }),
    ]);
  } finally {
    settled.abort();
  }
}

function atMost(
  name: string,
  figure: Pick<Figure, 'value' | 'shown' | 'floor' | 'goal' | 'unit'>,
): Figure {
  return { name, ...figure, better: 'less' };
}
