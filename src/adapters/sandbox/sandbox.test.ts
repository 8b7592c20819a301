import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { childProcesses } from '../../../test/fixtures/skills/driver.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { packagesFolder, type Sandbox, startSandbox } from './sandbox.ts';

/** Functions for the process, in a module of their own: `data:` urls need no file. */
const functions = `
  export const double = (n) => n * 2;
  export const fail = () => { throw new Error('no such thing'); };
  export const failOddly = () => { throw { message: 'odd' }; };
  export const recurse = (n) => recurse(n + 1) + 1;
  export const spin = () => { for (;;); };
  export const uninterruptible = () => { for (;;) new Array(9).fill(0); };
  export const backtrack = () => /^(a+)+$/.test('a'.repeat(50) + '!');
  export const hoard = () => { const all = []; for (;;) all.push({ n: all.length }); };
  export const buffer = () => { const all = []; for (;;) all.push(Buffer.alloc(4_000_000, 1)); };
  export const leave = () => process.exit(3);
  export const huge = () => 'x'.repeat(9_000_000);
  export const stray = () => { Promise.reject(new Error('late')); return 1; };
  export const environment = () => Object.keys(process.env);
  export const readFile = async (file) => (await import('node:fs')).readFileSync(file, 'utf8');
  export const writeFile = async (file) => (await import('node:fs')).writeFileSync(file, 'x');
  export const runProgram = async () => (await import('node:child_process')).execSync('id').toString();
  export const startThread = async () => new (await import('node:worker_threads')).Worker('1', { eval: true });
  export const connect = async (port) => {
    const { connect } = await import('node:net');
    return await new Promise((resolve, reject) => {
      connect(port, '127.0.0.1').on('connect', () => resolve('connected')).on('error', reject);
    });
  };
  export const evaluate = (code) => eval(code);
  export const makeFunction = (code) => (() => 0).constructor(code)();
`;
const options = { module: `data:text/javascript,${encodeURIComponent(functions)}`, memoryMb: 64 };
const endless = { function: 'backtrack', input: null };
/** More than a few of the calls below compute. */
const deadlineMs = 10_000;

async function startOwn(): Promise<Sandbox> {
  const sandbox = await startSandbox(options);
  onTestFinished(() => sandbox.stop());
  return sandbox;
}

test.each([
  ['npm', '/app/node_modules/jsonata/jsonata.js', '/app/node_modules'],
  [
    'npm, below another package',
    '/lib/node_modules/skillwright/node_modules/jsonata/jsonata.js',
    '/lib/node_modules/skillwright/node_modules',
  ],
  [
    'pnpm',
    '/app/node_modules/.pnpm/jsonata@2.2.2/node_modules/jsonata/jsonata.js',
    '/app/node_modules/.pnpm',
  ],
])(
  'the packages that a process may read are found where %s installs them',
  (_who, file, folder) => {
    expect(packagesFolder(file)).toBe(folder);
  },
);

describe('a sandboxed process', () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await startSandbox(options);
  });
  afterAll(() => sandbox.stop());
  const ask = (name: string, input: unknown = null) =>
    sandbox.ask({ function: name, input }, deadlineMs);

  test('answers with what the function returns', async () => {
    expect(await ask('double', 21)).toEqual({ value: 42 });
  });

  test.each([
    ['fail', 'no such thing'],
    ['failOddly', '[object Object]'],
    ['recurse', 'The input is nested too deeply'],
    ['huge', 'The result is too large'],
    ['nowhere', 'There is no function nowhere'],
    ['stray', 'leaves work behind that fails'],
  ])('says why a function fails (%s), and goes on', async (name, error) => {
    expect(await ask(name)).toEqual({ error });
    expect(await ask('double', 1)).toEqual({ value: 2 });
  });

  test.each([
    ['readFile', '/etc/hostname', 'restricted'],
    ['readFile', new URL('../../../package-lock.json', import.meta.url).pathname, 'restricted'],
    ['writeFile', '/tmp/sandbox-was-here', 'restricted'],
    ['runProgram', null, 'restricted'],
    ['startThread', null, 'restricted'],
    ['evaluate', '1', 'Code generation from strings disallowed'],
    ['makeFunction', 'return process', 'Code generation from strings disallowed'],
  ])('may do nothing but compute: %s(%j)', async (name, input, reason) => {
    expect(await ask(name, input)).toEqual({ error: expect.stringContaining(reason) });
  });

  test('reaches no network and sees no environment', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await waitFor(() => server.listening, { describe: 'the server listens' });
    const { port } = server.address() as { port: number };
    let visitors = 0;
    server.on('connection', () => {
      visitors += 1;
    });

    expect(await ask('connect', port)).toEqual({ error: expect.stringContaining('restricted') });
    expect(visitors).toBe(0);
    expect(await ask('environment')).toEqual({ value: [] });
  });
});

test.each(['spin', 'uninterruptible', 'backtrack'])(
  'a function that never returns is late, and its process is gone (%s)',
  async (name) => {
    const sandbox = await startOwn();

    expect(await sandbox.ask({ function: name, input: null }, 300)).toBe('late');
    expect(await sandbox.ask({ function: 'double', input: 1 }, 300)).toBe('gone');
  },
);

test.each(
  // How much memory buffers take, Linux tells alone.
  process.platform === 'linux' ? ['hoard', 'buffer'] : ['hoard'],
)('a function that fills its memory ends its process (%s)', async (name) => {
  const sandbox = await startOwn();

  expect(await sandbox.ask({ function: name, input: null }, deadlineMs)).toBe('exhausted');
});

test('a function that ends its process gives no answer', async () => {
  const sandbox = await startOwn();

  expect(await sandbox.ask({ function: 'leave', input: null }, deadlineMs)).toBe('gone');
});

test('a module that cannot be loaded is an error at the start', async () => {
  await expect(startSandbox({ ...options, module: 'file:///nowhere.ts' })).rejects.toThrow(
    'does not start',
  );
});

test.skipIf(process.platform !== 'linux')(
  'a process that the machine gives no time is waited for beyond its deadline',
  async () => {
    const before = sandboxPids();
    const sandbox = await startOwn();
    const [pid] = sandboxPids().filter((each) => !before.includes(each)) as [number];

    process.kill(pid, 'SIGSTOP');
    const begun = performance.now();
    const answer = sandbox.ask({ function: 'double', input: 4 }, 100);
    await waitFor(() => performance.now() - begun > 300, { describe: 'the deadline has passed' });
    process.kill(pid, 'SIGCONT');

    expect(await answer).toEqual({ value: 8 });
  },
);

test('a process whose parent is killed ends, even while a function blocks it', async () => {
  const program = `
    const { startSandbox } = await import(${JSON.stringify(new URL('sandbox.ts', import.meta.url))});
    const sandbox = await startSandbox(${JSON.stringify(options)});
    console.log('asked');
    await sandbox.ask(${JSON.stringify(endless)}, 60_000);
  `;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let said = '';
  parent.stdout.on('data', (bytes: Buffer) => {
    said += bytes.toString();
  });
  await waitFor(() => said.includes('asked'), { describe: 'the function runs' });
  const children = [...childProcesses(parent.pid)];
  const computing = children.find(([, line]) => line.includes('sandbox-process'))?.[0] as number;
  expect(computing).toBeGreaterThan(0);

  parent.kill('SIGKILL');

  await waitFor(() => !isThere(computing), { describe: 'the process is gone' });
});

test('an answer that came in time counts, even when the parent reads it late', async () => {
  const sandbox = await startOwn();
  const answer = sandbox.ask({ function: 'double', input: 1 }, 300);

  // The parent does nothing else for longer than the deadline.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);

  expect(await answer).toEqual({ value: 2 });
});

test('the outcome is held up, not late, when the parent itself was blocked at the deadline', async () => {
  const sandbox = await startOwn();
  const answer = sandbox.ask(endless, 300);

  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);

  expect(await answer).toBe('held up');
});

test('stopping a process also ends its guard', async () => {
  const guards = () =>
    [...childProcesses()].flatMap(([pid, line]) =>
      line.includes('sandbox-orphan-guard') ? [pid] : [],
    );
  const others = new Set(guards());
  const sandboxes = await Promise.all([startSandbox(options), startSandbox(options)]);
  const own = guards().filter((pid) => !others.has(pid));
  expect(own).toHaveLength(2);

  await Promise.all(sandboxes.map((sandbox) => sandbox.stop()));

  await waitFor(() => !guards().some((pid) => own.includes(pid)), {
    describe: 'the guards are gone',
  });
});

function sandboxPids(): number[] {
  return [...childProcesses()].flatMap(([pid, line]) =>
    line.includes('sandbox-process') ? [pid] : [],
  );
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
