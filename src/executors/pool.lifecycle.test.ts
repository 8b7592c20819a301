import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import {
  childProcesses,
  goodDir,
  request,
  silentHandlers,
  startTestPool,
  type TestPool,
} from '../../test/fixtures/skills/driver.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { SkillLoadError } from '../skills/sources/load-error.ts';
import type { PoolStats } from './pool.ts';
import type { PoolOptions } from './pool-options.ts';

const pools: TestPool[] = [];
const dirs: string[] = [];
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.stop(0)));
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true });
});

async function start(options: Partial<PoolOptions> = {}): Promise<TestPool> {
  const pool = await startTestPool(options);
  pools.push(pool);
  // The child that checked the schemas has made way for one that only loaded.
  await until(pool, { executors: 1, starting: 0 });
  return pool;
}

/** A directory with one module of this content. */
function dirWith(content: string): { dir: string; file: string } {
  const dir = mkdtempSync(join(tmpdir(), 'executors-'));
  dirs.push(dir);
  const file = join(dir, 'a.mjs');
  writeFileSync(file, content);
  return { dir, file };
}

const until = (pool: TestPool, wanted: Partial<PoolStats>) =>
  waitFor(() => expect(pool.stats()).toMatchObject(wanted) ?? true, {
    describe: () => `${JSON.stringify(wanted)}, not ${JSON.stringify(pool.stats())}`,
  });

const wait = (pool: TestPool, ms: number) =>
  pool.run(request('good/wait', { ms }), silentHandlers).outcome;

async function pidOf(pool: TestPool, alone = false): Promise<number> {
  const outcome = await pool.run(request('good/context', {}, { alone }), silentHandlers).outcome;
  if (outcome.kind !== 'completed') throw new Error(JSON.stringify(outcome));
  return (JSON.parse(outcome.output) as { pid: number }).pid;
}

describe('the number of executors', () => {
  test('is one until the first run, then the size and a spare, and one again after a rest', async () => {
    const pool = await start({ size: 2, idleMs: 100 });
    const long = wait(pool, 1_500);
    await until(pool, { executors: 3, starting: 0, inFlight: 1 });
    await long;
    await until(pool, { executors: 1, starting: 0, deaths: 0 });
    expect(await wait(pool, 1)).toMatchObject({ kind: 'completed' });
  });

  test('is made up for at once when one dies', async () => {
    const pool = await start({ size: 1 });
    await wait(pool, 1);
    await until(pool, { executors: 2 });
    const dead = pool.run(request('hostile/kill-for-real'), silentHandlers);
    expect(await dead.outcome).toMatchObject({ kind: 'lost' });
    // The spare has taken its place already.
    expect(pool.stats()).toMatchObject({ executors: 1, starting: 1, deaths: 1 });
    expect(await wait(pool, 1)).toMatchObject({ kind: 'completed' });
    await until(pool, { executors: 2, starting: 0 });
  });

  test('spreads runs over all that are ready', async () => {
    const pool = await start({ size: 2 });
    await wait(pool, 1);
    await until(pool, { executors: 3 });
    const long = [wait(pool, 200), wait(pool, 200)];
    const pids = await Promise.all([pidOf(pool), pidOf(pool)]);
    expect(new Set(pids).size).toBe(2);
    await Promise.all(long);
  });
});

describe('a run that wants to be alone', () => {
  test('gets an executor that has run nothing before and runs nothing beside', async () => {
    const pool = await start({ size: 1 });
    const shared = await pidOf(pool);
    const neighbours = [wait(pool, 400), wait(pool, 400)];
    const alone = await Promise.all([pidOf(pool, true), pidOf(pool, true)]);
    expect(new Set([shared, ...alone]).size).toBe(3);
    await Promise.all(neighbours);
    expect(await pidOf(pool)).toBe(shared);
  });
});

describe('an executor that runs nothing', () => {
  test('is left in peace: no pings, no timers', async () => {
    const timers = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const pool = await start({ size: 1 });
    await wait(pool, 1);
    await until(pool, { executors: 2 });
    await waitFor(() => timers() <= before, { describe: 'no timer is left' });
  });
});

describe('a start that fails', () => {
  test.each<[string, string, RegExp]>([
    ['a faulty field', 'export default { category: "Bad" }', /: category must be a slug such as/],
    [
      'a faulty schema',
      skillWith('{ type: "text" }'),
      /: parameters is no valid JSON Schema: type/,
    ],
    ['a syntax error', 'export default {', /: cannot be loaded: Unexpected end of input$/],
    ['a missing export', '\nimport { no } from "node:fs";', / named 'no' \(line 2\)$/],
    ['an exit', 'process.exit(1);', /: cannot be loaded: a skill may not end its process: /],
    [
      'a death',
      'import { execSync } from "node:child_process"; execSync("kill -9 " + process.pid);',
      /: ended the process that loaded it \(SIGKILL\)$/,
    ],
  ])('is told in one sentence with the file: %s', async (_, content, sentence) => {
    const { dir, file } = dirWith(content);
    const fault = await start({ skillsDirs: [dir] }).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(SkillLoadError);
    const { message } = fault as SkillLoadError;
    expect(message.startsWith(file)).toBe(true);
    expect(message).toMatch(sentence);
    expect(childProcesses().size).toBe(0);
  });

  test('is told when a module does not come back, or never is ready', async () => {
    const contents = ['for (;;);', 'await new Promise(() => {});'];
    const faults = contents.map(async (content) => {
      const { dir, file } = dirWith(content);
      await expect(start({ skillsDirs: [dir], loadMs: 2_000 })).rejects.toThrow(
        `${file}: did not finish loading within 2000 ms`,
      );
    });
    await Promise.all(faults);
    expect(childProcesses().size).toBe(0);
  });

  test('later on is tried again after a pause that grows, and said; runs wait', async () => {
    const { dir, file } = dirWith(skillWith('{}'));
    const pool = await start({ skillsDirs: [goodDir, dir], size: 2 });
    expect(pool.definitions.map(({ key }) => key)).toContain('a/v1.0/b');
    writeFileSync(file, 'export default 5;');
    const alone = pool.run(request('good/echo', {}, { alone: true }), silentHandlers);
    await waitFor(() => pool.stats().failedStarts >= 4, { describe: 'starts fail' });
    expect(pool.stats()).toMatchObject({ executors: 1, waiting: 1 });
    expect(pool.lines).toContainEqual({
      level: 'error',
      message: 'executors do not start',
      error: `${file}: its default export must be a skill object, got 5`,
      failedStarts: 3,
      ms: 100,
    });
    writeFileSync(file, skillWith('{}'));
    expect(await alone.outcome).toMatchObject({ kind: 'completed' });
    await until(pool, { executors: 3, failedStarts: 0 });
  });
});

describe('stop', () => {
  test('aborts what runs, kills what does not end and leaves no process', async () => {
    const pool = await start({ size: 2 });
    const ending = wait(pool, 10_000);
    const blocking = pool.run(request('hostile/endless-loop'), silentHandlers);
    await until(pool, { executors: 3 });
    const stopped = pool.stop(50);
    expect(await pool.run(request('good/echo'), silentHandlers).outcome).toEqual({
      kind: 'aborted',
    });
    await stopped;
    expect(await ending).toEqual({ kind: 'aborted' });
    expect(await blocking.outcome).toEqual({ kind: 'aborted' });
    expect(childProcesses().size).toBe(0);
    await pool.stop(50);
  });

  test('ends a run that waits', async () => {
    const { dir, file } = dirWith(skillWith('{}'));
    const pool = await start({ skillsDirs: [goodDir, dir], size: 1 });
    writeFileSync(file, 'export default 5;');
    const first = pool.run(request('good/echo', {}, { alone: true }), silentHandlers);
    const second = pool.run(request('good/echo', {}, { alone: true }), silentHandlers);
    first.abort('not wanted any more');
    expect(await first.outcome).toEqual({ kind: 'aborted' });
    await pool.stop(0);
    expect(await second.outcome).toEqual({ kind: 'aborted' });
  });
});

test('a parent that is killed leaves no child, not even a blocked one', {
  timeout: 30_000,
}, async () => {
  const script = fileURLToPath(
    new URL('../../test/fixtures/skills/orphan-parent.ts', import.meta.url),
  );
  const parent = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pids = line.toString().trim().split(' ').map(Number);
  expect(pids).toHaveLength(4);
  parent.kill('SIGKILL');
  await waitFor(() => pids.every((pid) => !isAlive(pid)), { describe: 'the children are gone' });
});

function skillWith(parameters: string): string {
  return `export default { category: 'a', name: 'b', version: 'v1.0', displayName: 'B',
    description: 'B.', parameters: ${parameters}, output: {}, run: (input) => input };`;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
