import { describe, expect, test } from 'vitest';
import { waitFor } from '../../../../../test/support/wait-for.ts';
import { inSandbox, type SandboxTask, sandboxesMax } from './in-sandbox.ts';

/** The module with the functions for the process, as a `data:` url. */
const functions = `
  export const double = (n) => n * 2;
  export const later = async (n) => n + 1;
  export const fail = () => { throw new Error('no such thing'); };
  export const failOddly = () => { throw { message: 'odd' }; };
  export const spin = () => { for (;;); };
  export const uninterruptible = () => { for (;;) new Array(9).fill(0); };
  export const recurse = (n) => recurse(n + 1) + 1;
  export const hoard = () => { const all = []; for (;;) all.push({ n: all.length }); };
  export const leave = () => process.exit(3);
  export const pid = () => process.pid;
  export const count = () => { globalThis.n = (globalThis.n ?? 0) + 1; return globalThis.n; };
`;

function task(name: string, input?: unknown, more: Partial<SandboxTask> = {}): SandboxTask {
  return {
    module: `data:text/javascript,${encodeURIComponent(functions)}`,
    function: name,
    input,
    signal: new AbortController().signal,
    timeoutMs: 8_000,
    ...more,
  };
}

function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

describe('a computation in a sandboxed process', () => {
  test('returns what the function returns, at once or later', async () => {
    expect(await inSandbox(task('double', 21))).toBe(42);
    expect(await inSandbox(task('later', 1))).toBe(2);
  });

  test.each([
    ['fail', 'no such thing'],
    ['failOddly', '[object Object]'],
    ['recurse', 'nested too deeply'],
    ['nowhere', 'There is no function nowhere'],
  ])('that fails (%s) says why, and is not tried again', async (name, message) => {
    await expect(inSandbox(task(name, 1))).rejects.toMatchObject({
      name: 'SkillError',
      message: expect.stringContaining(message),
      retryable: false,
    });
  });

  test.each(['spin', 'uninterruptible'])('that does not end (%s) is stopped', async (name) => {
    await expect(inSandbox(task(name, null, { timeoutMs: 200 }))).rejects.toMatchObject({
      message: 'This takes longer than 0.2 s',
      retryable: false,
    });
  });

  test('that fills its memory is stopped, and nothing else is', async () => {
    await expect(inSandbox(task('hoard', null, { memoryMb: 32 }))).rejects.toMatchObject({
      message: 'This needs more than 32 MB of memory',
      retryable: false,
    });
  });

  test('that ends its thread has no result', async () => {
    await expect(inSandbox(task('leave'))).rejects.toThrow('ended without a result');
  });

  test('shares no process with another one, unless its module isolates them', async () => {
    expect(await inSandbox(task('count'))).toBe(1);
    expect(await inSandbox(task('count'))).toBe(1);
    expect(await inSandbox(task('count', null, { reusable: true }))).toBe(1);
    expect(await inSandbox(task('count', null, { reusable: true }))).toBe(2);
  });

  test.each([
    ['just now', 'SIGKILL', () => true],
    ['a while ago', 'SIGABRT', hasEnded],
  ] as const)(
    'succeeds although the process kept for it has ended %s',
    async (_, signal, isReady) => {
      const kept = await inSandbox<number>(task('pid', null, { reusable: true }));
      process.kill(kept, signal);
      await waitFor(() => isReady(kept), { describe: 'the process has ended' });

      expect(await inSandbox(task('double', 2, { reusable: true }))).toBe(4);
    },
  );

  test('whose input cannot be written is refused', async () => {
    const circle: { itself?: unknown } = {};
    circle.itself = circle;

    await expect(inSandbox(task('double', circle))).rejects.toMatchObject({
      message: 'The input is too large or nested too deeply',
      retryable: false,
    });
  });

  test('ends when the run is aborted, with the reason of that', async () => {
    const run = new AbortController();
    const reason = new Error('cancelled');

    const spinning = inSandbox(task('spin', null, { signal: run.signal }));
    run.abort(reason);

    await expect(spinning).rejects.toBe(reason);
    await expect(inSandbox(task('double', 1, { signal: run.signal }))).rejects.toBe(reason);
  });
});

test('more computations than may run at a time wait their turn, and can be aborted while they wait', async () => {
  const first = new AbortController();
  const second = new AbortController();
  const holding = Array.from({ length: sandboxesMax }, () =>
    inSandbox(task('spin', null, { signal: first.signal })),
  );
  const outcomes = Promise.allSettled(holding);

  const abandoned = inSandbox(task('double', 1, { signal: second.signal }));
  const patient = inSandbox(task('double', 2));
  second.abort(new Error('given up'));
  await expect(abandoned).rejects.toThrow('given up');
  first.abort(new Error('enough'));

  expect(await patient).toBe(4);
  expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true);
});

test('a module that cannot be loaded is an error of this run', async () => {
  const nowhere = task('double', 1, { module: 'file:///nowhere.ts' });

  await expect(inSandbox(nowhere)).rejects.toMatchObject({
    name: 'SkillError',
    message: 'No process could be started for this',
  });
});
