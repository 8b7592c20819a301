import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  childProcesses,
  drive,
  request,
  silentHandlers,
  startTestPool,
  type TestPool,
} from '../../../test/fixtures/skills/driver.ts';
import { rounds } from '../../../test/support/soak.ts';
import { patient, waitFor } from '../../../test/support/wait-for.ts';
import { progressMs } from './limits.ts';
import { memoryAllowanceMb } from './memory-limit.ts';
import type { RunReport } from './run.ts';

const goodRunsMin = rounds(20, 50);
/** Where an executor dies, each of them runs again, alone, in an executor of its own. */
const displacedMin = rounds(4, 50);
const limitMb = 64;
const bytesPerMb = 1_048_576;

let pool: TestPool;
/** Starts the pool of a group of tests, which ends with them. */
function usePool(stallMs: number): void {
  beforeAll(async () => {
    pool = await startTestPool({ memoryMb: limitMb, stallMs });
  });
  afterAll(() => pool.stop(100));
}

/** On a busy machine, runs that do much before they give control back are not taken for blocked ones. */
const patientMs = 15_000;
/** For runs that never give it back. */
const impatientMs = patient(1_000);

/** One hostile run among many good ones, each driven as the jobs slice would. */
async function amongGoodRuns(
  path: string,
  input: unknown,
  { timeoutMs = 20_000, goodRuns = goodRunsMin, goodMs = 10 } = {},
) {
  const good = Array.from({ length: goodRuns }, (_, i) =>
    drive(pool, request('good/wait', { ms: goodMs + i * 3 })),
  );
  const hostile = await drive(pool, request(path, input, { timeoutMs }));
  const ends = await Promise.all(good);
  expect(ends.map(({ outcome }) => outcome.kind)).toEqual(Array(goodRuns).fill('completed'));
  return hostile;
}

const exits = { kind: 'failed', message: expect.stringContaining('may not end its process') };
const blocks = { kind: 'lost', message: expect.stringContaining('blocked its executor') };
const dies = (how: string) => ({ kind: 'lost', message: expect.stringContaining(how) });
const garbles = dies("wrote to its executor's own socket");
const invalid = (message: string) => ({
  kind: 'failed',
  code: 'output_invalid',
  message: expect.stringContaining(message),
  retryable: false,
});
const tooLarge = {
  kind: 'failed',
  code: 'skill_execution_failed',
  message: 'the output is larger than 1024 KiB of JSON',
  retryable: false,
};

describe('costs only its own run, and no executor:', () => {
  usePool(patientMs);

  test.each<[string, unknown, object]>([
    ['exit', {}, exits],
    ['exit-by-name', {}, exits],
    ['exit-later', {}, exits],
    ['exit-after-answer', {}, { kind: 'completed' }],
    ['abort', {}, exits],
    ['kill', {}, exits],
    ['throw-after-answer', {}, { kind: 'completed' }],
    ['throw-beside', {}, { kind: 'failed', message: 'thrown beside', retryable: true }],
    ['outputs', { what: 'circular' }, invalid('circular')],
    ['outputs', { what: 'bigint' }, invalid('BigInt')],
    ['outputs', { what: 'undefined' }, invalid('is undefined')],
    ['outputs', { what: 'function' }, invalid('is a function')],
    ['outputs', { what: 'deep' }, invalid('deeper than 64 levels')],
    ['outputs', { what: 'late' }, invalid('deeper than 64 levels')],
    ['outputs', { what: 'throws' }, invalid('not me')],
    ['outputs', { what: 'huge' }, tooLarge],
    ['outputs', { what: 'buffer' }, tooLarge],
    ['outputs', { what: 'many' }, tooLarge],
    ['outputs', { what: 'wide' }, tooLarge],
    ['print-gigabyte', {}, { kind: 'completed' }],
    ['write-past-console', {}, { kind: 'completed' }],
    ['says', { text: '[["done",999999,1],["log",999999,0,"x",null]]\n' }, { kind: 'timeout' }],
  ])('%s %j', { timeout: 120_000 }, async (name, input, outcome) => {
    // On a busy machine 256 MiB take longer than 20 s to go through a pipe.
    const timeoutMs = name === 'says' ? 200 : 60_000;
    const hostile = await amongGoodRuns(`hostile/${name}`, input, { timeoutMs });
    expect(hostile.outcome).toMatchObject(outcome);
    // Only a run that does not end takes its executor along, and that after all others.
    if (name !== 'says') expect(hostile.deaths).toBe(0);
  });
});

/** Has a hostile run take its executor along. */
async function expectDeath(
  name: string,
  input: unknown,
  outcome: object,
  goodRuns = displacedMin,
): Promise<void> {
  const { deaths } = pool.stats();
  const hostile = await amongGoodRuns(`hostile/${name}`, input, {
    timeoutMs: name === 'never' ? 300 : 60_000,
    goodRuns,
    // All of them are there when it ends, so that none is suspected alone.
    goodMs: 300,
  });
  expect(hostile.outcome).toMatchObject(outcome);
  await waitFor(() => pool.stats().deaths > deaths, { describe: 'an executor died' });
}

describe('costs an executor, and of the runs only its own:', () => {
  usePool(patientMs);

  test.each<[string, unknown, object]>([
    ['kill-for-real', {}, dies('SIGKILL')],
    ['kill-for-real', { signal: 'SEGV' }, dies('SIGSEGV')],
    ['heap-leak', {}, dies('out of memory')],
    ['buffer-leak', {}, dies(`more than ${limitMb + memoryAllowanceMb} MB of memory`)],
    ['never', {}, { kind: 'timeout', message: 'run timed out after 300 ms' }],
    ['says', { text: 'no JSON\n' }, garbles],
    ['says', { text: '[["pong",999999,0]]\n' }, garbles],
    ['says', { text: 'endless ', times: 1_500_000 }, garbles],
  ])('%s %j', { timeout: 120_000 }, expectDeath);
});

describe('costs an executor that it blocks, and of the runs only its own:', () => {
  usePool(impatientMs);

  type Blocking = [string, unknown, object];
  const blocking: Blocking[] = [
    ['endless-loop', {}, blocks],
    ['retitled-loop', {}, blocks],
    ['atomics-wait', {}, blocks],
    ['loop-after-answer', {}, { kind: 'completed' }],
  ];
  // Like the endless loop, and like the wait, for the pool; each takes a second of the processor.
  const likewise: Blocking[] = [
    ['endless-loop-later', {}, blocks],
    ['exec-sleep', {}, blocks],
    ['hash-for-hours', {}, blocks],
  ];
  test.each([...blocking, ...rounds([], likewise)])('%s %j', { timeout: 120_000 }, expectDeath);

  test('the only run beside one that answers and then blocks is not charged', async () => {
    await expectDeath('loop-after-answer', {}, { kind: 'completed' }, 1);
  });

  test('a process that a blocked run started does not outlive its executor', async () => {
    const running = pool.run(request('hostile/exec-sleep', {}, { timeoutMs: 100 }), silentHandlers);
    const sleeping = () => {
      for (const pid of childProcesses().keys()) {
        for (const [inner, command] of childProcesses(pid))
          if (/sleep|86399/.test(command)) return inner;
      }
      return undefined;
    };
    const pid = await waitFor(sleeping, { describe: 'the sleep runs' });
    await running.outcome;
    await waitFor(() => !isAlive(pid), { describe: 'the sleep is gone' });
  });
});

describe('of what a run reports and prints', () => {
  usePool(patientMs);

  test('a flood of reports is cut to the limits of a run', async () => {
    const reports: RunReport[] = [];
    const onReport = (report: RunReport): void => void reports.push(report);
    const begin = performance.now();
    const outcome = await pool.run(request('hostile/floods'), { ...silentHandlers, onReport })
      .outcome;
    expect(outcome).toEqual({ kind: 'completed', output: '{"refused":1800}' });
    const logs = reports.filter((report) => report.type === 'log');
    expect(logs).toHaveLength(1_001);
    expect(logs[0]?.message).toHaveLength(8_192);
    expect(logs.at(-1)?.message).toBe('more than 1000 lines; the rest is left out');
    expect(reports.filter(({ type }) => type === 'message')).toHaveLength(200);
    const progressMax = (performance.now() - begin) / progressMs + 2;
    expect(reports.filter(({ type }) => type === 'progress').length).toBeLessThan(progressMax);
  });

  test('bytes that are not kept do not stay in memory', { timeout: 30_000 }, async () => {
    const before = process.memoryUsage().rss;
    await pool.run(request('hostile/write-past-console'), silentHandlers).outcome;
    expect((process.memoryUsage().rss - before) / bytesPerMb).toBeLessThan(300);
    await waitFor(() => pool.lines.some(({ message }) => message.includes('bytes were dropped')), {
      describe: 'the drop is logged',
    });
  });

  test('an output keeps a NUL and half a surrogate pair exactly', async () => {
    const outcome = await pool.run(request('hostile/outputs', { what: 'broken' }), silentHandlers)
      .outcome;
    expect(outcome).toEqual({ kind: 'completed', output: '{"cut":"\\ud83d","nul":"a\\u0000b"}' });
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
