/**
 * The functions of ours that one request executes, by V8's precise coverage in a process of the platform that runs its
 * sources on SQLite: one job of `util/echo`, and one turn of a model at a provider of this process.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { headersFor, startProgram, temporaryDirectory } from '../../bench/server.ts';
import { inspectorOf } from '../../test/support/inspector.ts';
import { startScriptedProvider } from '../../test/support/scripted-provider.ts';
import { freePort } from '../../test/support/supervised.ts';

const root = join(import.meta.dirname, '../..');
/** Timers of the platform may run meanwhile, so the functions count that each of so many requests executes. */
const samples = 9;
const warmUps = 5;
/** Milliseconds for what follows an answer, such as its line of the log and the release of the slot. */
const afterMs = 50;

export interface Executed {
  readonly functions: number;
  readonly files: number;
}

export interface RequestMeasures {
  readonly echo: Executed;
  readonly turn: Executed;
  readonly startMs: number;
  /** Loaded at the start: of ours, and of others. */
  readonly modules: { readonly ours: number; readonly others: number };
}

export async function measureRequests(): Promise<RequestMeasures> {
  const provider = await startScriptedProvider();
  const dataDir = temporaryDirectory();
  const port = await freePort();
  const begun = performance.now();
  const platform = await startProgram(
    [`--inspect=127.0.0.1:${port}`, join(import.meta.dirname, 'platform.ts')],
    dataDir,
    {
      DEFAULT_MODEL: 'openai/test',
      OPENAI_API_KEY: 'sk-test',
      OPENAI_BASE_URL: provider.openaiBaseUrl,
      EXECUTORS: '1',
    },
  );
  const startMs = performance.now() - begun;
  const inspector = await connect((await inspectorOf(port)) ?? '');
  try {
    const modules = await inspector.modules();
    const headers = { ...(await headersFor('ours', platform.url)), prefer: 'wait=30' };
    const post = async (skill: string, input: object) => {
      const url = `${platform.url}/api/${skill}`;
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(input) });
      const job = (await response.json()) as { status: string };
      if (job.status !== 'completed') throw new Error(`${skill}: ${JSON.stringify(job)}`);
    };
    const measure = (skill: string, input: object) => inEach(inspector, () => post(skill, input));
    return {
      echo: await measure('util/v1.0/echo', { text: 'a' }),
      turn: await measure('agent/v1.0/run-task', { task: 'Hello?' }),
      startMs,
      modules,
    };
  } finally {
    inspector.close();
    await platform.stop();
    await provider.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function inEach(inspector: Connection, request: () => Promise<void>): Promise<Executed> {
  for (let i = 0; i < warmUps; i += 1) await request();
  await pause(afterMs);
  let executed: ReadonlySet<string> | undefined;
  for (let i = 0; i < samples; i += 1) {
    await inspector.executed();
    await request();
    await pause(afterMs);
    const now = await inspector.executed();
    executed = executed === undefined ? now : executed.intersection(now);
  }
  const places = [...(executed ?? [])];
  const files = new Set(places.map((place) => place.slice(0, place.lastIndexOf(':'))));
  return { functions: places.length, files: files.size };
}

interface Script {
  readonly url: string;
  readonly functions: readonly {
    readonly ranges: readonly { readonly count: number; readonly startOffset: number }[];
  }[];
}

interface Connection {
  /** The functions executed since the last call, as `url:offset`. */
  executed(): Promise<ReadonlySet<string>>;
  modules(): Promise<RequestMeasures['modules']>;
  close(): void;
}

/** Connects to the inspector of a process, and has V8 count calls from then on. */
async function connect(address: string): Promise<Connection> {
  const socket = new WebSocket(address);
  const answers = new Map<number, (result: never) => void>();
  const loaded = new Set<string>();
  socket.addEventListener('message', ({ data }) => {
    const { id, method, params, result } = JSON.parse(String(data));
    if (method === 'Debugger.scriptParsed') loaded.add(params.url);
    answers.get(id)?.(result as never);
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => reject(new Error(`no inspector at ${address}`)));
  });
  const send = <Result>(method: string, params: object = {}): Promise<Result> => {
    const id = answers.size + 1;
    const { promise, resolve } = Promise.withResolvers<Result>();
    answers.set(id, resolve);
    socket.send(JSON.stringify({ id, method, params }));
    return promise;
  };
  const src = pathToFileURL(join(root, 'src/')).href;
  await send('Profiler.enable');
  await send('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return {
    async executed() {
      const { result } = await send<{ result: Script[] }>('Profiler.takePreciseCoverage');
      const ours = result.filter(({ url }) => url.startsWith(src));
      const places = ours.flatMap(({ url, functions }) =>
        functions.flatMap(({ ranges: [whole] }) =>
          whole !== undefined && whole.count > 0 ? [`${url}:${whole.startOffset}`] : [],
        ),
      );
      return new Set(places);
    },
    async modules() {
      await send('Debugger.enable');
      await send('Debugger.disable');
      const files = [...loaded].filter((url) => url.startsWith('file:'));
      const ours = files.filter((url) => url.startsWith(src)).length;
      return { ours, others: files.length - ours };
    },
    close: () => socket.close(),
  };
}
