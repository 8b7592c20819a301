import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  childProcesses,
  goodDir,
  hostileDir,
  request,
  silentHandlers,
  startTestPool,
  type TestPool,
} from '../../../test/fixtures/skills/driver.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { SkillLoadError } from '../skills/sources/load-error.ts';
import type { PoolStats } from './pool.ts';
import type { PoolOptions } from './pool-options.ts';

/** Processes of other files that share the worker, such as its pool of executors. */
let others: ReadonlySet<number> = new Set();
beforeEach(() => {
  others = new Set(childProcesses().keys());
});

/** What the test itself has started, by process id. */
const ownProcesses = () => new Map([...childProcesses()].filter(([pid]) => !others.has(pid)));

const pools: TestPool[] = [];
const dirs: string[] = [];
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.stop(0)));
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true });
});

async function start(options: Partial<PoolOptions> = {}): Promise<TestPool> {
  const pool = await startTestPool(options);
  pools.push(pool);
  return pool;
}

function emptyDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'executors-'));
  dirs.push(dir);
  return dir;
}

/** A directory with one module of this content. */
function dirWith(content: string): { dir: string; file: string } {
  const dir = emptyDir();
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

/** Computes for 600 ms without a pause. */
const busy = (pool: TestPool) =>
  pool.run(request('hostile/busy', { ms: 600 }), silentHandlers).outcome;

const executors = () =>
  [...ownProcesses()].filter(([, command]) => /^skill executor|executors\/child/.test(command));

async function pidOf(pool: TestPool, alone = false): Promise<number> {
  const outcome = await pool.run(request('good/context', {}, { alone }), silentHandlers).outcome;
  if (outcome.kind !== 'completed') throw new Error(JSON.stringify(outcome));
  return (JSON.parse(outcome.output) as { pid: number }).pid;
}

test.each([
  ['a.ts', 'import { defineSkill, SkillError } from "skillwright";'],
  ['a.mjs', 'import { defineSkill, SkillError } from "skillwright";'],
  ['a.js', 'const { defineSkill, SkillError } = require("skillwright");'],
])(
  "%s gets the authors' module of the platform, without a package beside it",
  async (name, line) => {
    const dir = emptyDir();
    const isCommonJs = name === 'a.js';
    writeFileSync(join(dir, 'package.json'), isCommonJs ? '{"type":"commonjs"}' : '{}');
    const skill = `{
    category: 'own', name: 'refuse', version: 'v1.0', displayName: 'Own', description: 'Own.',
    parameters: {}, output: {},
    run() { throw new SkillError('refused', { code: 'missing_credentials', retryable: false }); },
  }`;
    const end = isCommonJs ? 'module.exports =' : 'export default';
    writeFileSync(join(dir, name), `${line}\n${end} defineSkill(${skill});`);
    const pool = await start({ skillsDirs: [dir] });

    const run = pool.run(request('own/refuse', {}), silentHandlers);

    const failure = { message: 'refused', code: 'missing_credentials', retryable: false };
    expect(await run.outcome).toMatchObject({ kind: 'failed', ...failure });
  },
);

describe('the number of executors', () => {
  test('is one until the first run, then one and a spare, and none after the idle time', async () => {
    const pool = await start({ size: 2, idleMs: 100 });
    expect(pool.stats()).toMatchObject({ executors: 1, starting: 0 });
    const long = pool.run(request('good/wait', { ms: 60_000 }), silentHandlers);
    await until(pool, { executors: 2, starting: 0, inFlight: 1 });
    long.abort('seen enough');
    await long.outcome;
    await until(pool, { executors: 0, starting: 0, deaths: 0 });
    await waitFor(() => executors().length === 0, { describe: 'their processes have ended' });
    expect(await wait(pool, 1)).toMatchObject({ kind: 'completed' });
  });

  test('is restored at once when one dies', async () => {
    const pool = await start({ size: 1 });
    await wait(pool, 1);
    await until(pool, { executors: 2 });
    await pool.run(request('hostile/kill-for-real'), silentHandlers).outcome;
    // The spare has taken its place already.
    expect(pool.stats()).toMatchObject({ executors: 1, starting: 1, deaths: 1 });
    expect(await wait(pool, 1)).toMatchObject({ kind: 'completed' });
    await until(pool, { executors: 2, starting: 0 });
  });

  test('keeps one whose runs compute longer together than one of them may', async () => {
    const pool = await start({ size: 1, stallMs: 1_000 });
    const computing = Array.from({ length: 4 }, () => busy(pool));
    expect(await Promise.all(computing)).toMatchObject(
      computing.map(() => ({ kind: 'completed', output: '"computed"' })),
    );
    expect(pool.stats()).toMatchObject({ deaths: 0 });
  });

  test('grows up to the size while executors compute, and runs are then spread over them', async () => {
    const pool = await start({ size: 2 });
    await wait(pool, 1);
    await until(pool, { executors: 2, starting: 0 });
    const computing = [busy(pool), busy(pool)];
    await until(pool, { executors: 3 });
    await Promise.all(computing);
    expect(pool.stats()).toMatchObject({ executors: 3, starting: 0, deaths: 0 });

    await waitFor(
      async () => {
        const long = [wait(pool, 50), wait(pool, 50)];
        const pids = await Promise.all([pidOf(pool), pidOf(pool)]);
        await Promise.all(long);
        return new Set(pids).size === 2;
      },
      { describe: 'two runs are in different executors' },
    );
  });
});

describe('a pool that was not used', () => {
  /** A pool that has ended its first executor. */
  async function unused(options: Partial<PoolOptions> = {}): Promise<TestPool> {
    const pool = await start({ size: 2, unusedMs: 1, ...options });
    await until(pool, { executors: 0, starting: 0 });
    return pool;
  }

  test('has no executor; runs that come at once wait for one, and share it', async () => {
    // Of size 1: a larger pool would grow by one more where the first computes for long.
    const pool = await unused({ size: 1 });
    const pids = Array.from({ length: 5 }, () => pidOf(pool));
    expect(pool.stats()).toMatchObject({ starting: 1, waiting: 5, inFlight: 5 });

    expect(new Set(await Promise.all(pids)).size).toBe(1);
    await until(pool, { executors: 2, starting: 0, waiting: 0, waitedMs: 0 });
  });

  test('starts an executor for a run that must be alone', async () => {
    const pool = await unused({ size: 1 });
    const alone = await pidOf(pool, true);
    expect(await pidOf(pool)).not.toBe(alone);
  });

  test('starts one when it is told that a run will come, and ends it when none comes', async () => {
    const pool = await unused({ unusedMs: 50 });
    pool.warm();
    expect(pool.stats()).toMatchObject({ starting: 1 });
    pool.warm();
    expect(pool.stats()).toMatchObject({ starting: 1 });
    await until(pool, { executors: 0, starting: 0, deaths: 0 });

    pool.warm();
    expect(await wait(pool, 1)).toMatchObject({ kind: 'completed' });
  });

  test('keeps its executors when it has no idle time', async () => {
    const keeping = await start({ idleMs: null, unusedMs: null });
    const pid = await pidOf(keeping);
    const other = await unused({ idleMs: 1 });
    await wait(other, 1);
    await until(other, { executors: 0, starting: 0 });
    expect(await pidOf(keeping)).toBe(pid);
  });

  test('runs the skills that were loaded at the start', async () => {
    const { dir, file } = dirWith(skillWith('{}', '() => "old"'));
    const pool = await unused({ skillsDirs: [dir] });
    writeFileSync(file, skillWith('{}', '() => "new"'));
    expect(await pool.run(request('a/b'), silentHandlers).outcome).toEqual({
      kind: 'completed',
      output: '"old"',
    });
  });

  test('goes on to start executors that fail, also after the run has been aborted', async () => {
    const dir = emptyDir();
    for (const name of ['a', 'b', 'c']) {
      writeFileSync(join(dir, `${name}.mjs`), diesWhen(dir, name));
    }
    const pool = await unused({ skillsDirs: [goodDir, dir], size: 1, idleMs: 1 });
    writeFileSync(join(dir, 'flag'), '');
    const run = pool.run(request('good/wait', { ms: 1 }), silentHandlers);
    await until(pool, { failedStarts: 1, waiting: 1 });
    run.abort('not wanted any more');
    expect(await run.outcome).toEqual({ kind: 'aborted' });

    // Each of the three ends one start, and is passed over by the next.
    await until(pool, { failedStarts: 0, executors: 0, starting: 0 });
    expect(pool.stats()).toMatchObject({ deaths: 3 });
    expect(await wait(pool, 1)).toMatchObject({ kind: 'completed' });
  });

  test('aborts the run that waits for an executor when it is stopped, and leaves no process', async () => {
    const pool = await unused();
    const run = wait(pool, 1);
    await pool.stop(50);
    expect(await run).toEqual({ kind: 'aborted' });
    expect(ownProcesses().size).toBe(0);
    pool.warm();
    expect(pool.stats()).toMatchObject({ executors: 0, starting: 0 });
  });

  test('lets a run that waits for an executor end when it is retired', async () => {
    const pool = await unused();
    const run = wait(pool, 1);
    const retired = pool.retire();
    expect(await run).toMatchObject({ kind: 'completed' });
    await retired;
    expect(ownProcesses().size).toBe(0);
  });
});

describe('a run that wants to be alone', () => {
  test('gets an executor that has run nothing before and runs nothing else', async () => {
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
  test('gets no pings and has no timers', async () => {
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
    [
      'a syntax error',
      'export default {',
      /: cannot be loaded: Unexpected end of input \(line 1\)$/,
    ],
    ['a missing export', '\nimport { no } from "node:fs";', / named 'no' \(line 2, column 10\)$/],
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
    expect(ownProcesses().size).toBe(0);
  });

  test('is reported when a module does not return, or the child is never ready', async () => {
    const contents = ['for (;;);', 'await new Promise(() => {});'];
    const faults = contents.map(async (content) => {
      const { dir, file } = dirWith(content);
      await expect(start({ skillsDirs: [dir], loadMs: 2_000 })).rejects.toThrow(
        `${file}: did not finish loading within 2000 ms; SKILL_LOAD_MS is how long it may take`,
      );
    });
    await Promise.all(faults);
    expect(ownProcesses().size).toBe(0);
  });

  test('after the first start is retried with growing backoff, and logged; runs wait', async () => {
    const dir = emptyDir();
    const names = ['a', 'b', 'c', 'd'];
    for (const name of names) writeFileSync(join(dir, `${name}.mjs`), diesWhen(dir, name));
    const pool = await start({ skillsDirs: [goodDir, dir], size: 1 });
    writeFileSync(join(dir, 'flag'), '');
    const alone = pool.run(request('good/echo', {}, { alone: true }), silentHandlers);

    await waitFor(() => pool.stats().failedStarts >= 4, { describe: 'starts fail' });

    expect(pool.stats()).toMatchObject({ executors: 1, waiting: 1 });
    expect(pool.lines).toContainEqual({
      level: 'error',
      message: 'executors do not start',
      error: `${join(dir, 'c.mjs')}: ended the process that loaded it (SIGKILL)`,
      failedStarts: 3,
      ms: 100,
    });
    // By now each of the four has ended one start, and is passed over by the next.
    expect(await alone.outcome).toMatchObject({ kind: 'completed' });
    await until(pool, { failedStarts: 0 });
  });
});

describe.each([false, true])('a run that asks whether it may begin (alone: %s)', (alone) => {
  /** `answer` resolves the question; `asked` is true once it was put. */
  function askingRun(pool: TestPool) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const asking = { isAsked: false };
    const confirmStart = () => {
      asking.isAsked = true;
      return promise;
    };
    const run = pool.run(request('good/echo', {}, { alone }), { ...silentHandlers, confirmStart });
    return Object.assign(asking, { run, answer: resolve });
  }
  const untilAsked = (asking: { isAsked: boolean }) =>
    waitFor(() => asking.isAsked, { describe: 'it asks' });

  test('asks only once an executor is ready, and begins with a yes', async () => {
    const pool = await start({ size: 1, idleMs: 1 });
    await wait(pool, 1);
    await until(pool, { executors: 0, starting: 0 });

    const asking = askingRun(pool);

    expect(pool.stats()).toMatchObject({ executors: 0, waiting: 1 });
    expect(asking.isAsked).toBe(false);
    await untilAsked(asking);
    expect(pool.stats().executors).toBeGreaterThan(0);
    expect(pool.stats()).toMatchObject({ waiting: 1 });
    asking.answer(true);
    expect(await asking.run.outcome).toMatchObject({ kind: 'completed' });
    expect(pool.stats()).toMatchObject({ waiting: 0, inFlight: 0 });
  });

  test('ends as aborted with a no, when it is aborted, and when the pool stops', async () => {
    const pool = await start({ size: 3 });
    const [refused, aborted, stopped] = [askingRun(pool), askingRun(pool), askingRun(pool)];
    await Promise.all([refused, aborted, stopped].map(untilAsked));

    refused.answer(false);
    aborted.run.abort('not needed');
    expect(await refused.run.outcome).toEqual({ kind: 'aborted' });
    expect(await aborted.run.outcome).toEqual({ kind: 'aborted' });
    aborted.answer(true);
    await pool.stop(0);

    expect(await stopped.run.outcome).toEqual({ kind: 'aborted' });
    stopped.answer(true);
    expect(pool.stats()).toMatchObject({ waiting: 0, inFlight: 0 });
  });

  test('begins in another executor when that one has died meanwhile, without another question', async () => {
    const pool = await start({ size: 1 });
    const asking = askingRun(pool);
    await untilAsked(asking);
    const before = executors().map(([pid]) => pid);
    for (const pid of before) process.kill(pid, 'SIGKILL');
    await until(pool, { deaths: before.length });

    asking.answer(true);

    expect(await asking.run.outcome).toMatchObject({ kind: 'completed' });
  });
});

describe('a replaced executor', () => {
  /** Has the shared executor die; resolves when another has taken its place. */
  async function replace(pool: TestPool): Promise<void> {
    const { deaths } = pool.stats();
    await pool.run(request('hostile/kill-for-real'), silentHandlers).outcome;
    await until(pool, { deaths: deaths + 1, starting: 0 });
  }

  test('runs the skills that were loaded at the start, even when the files have changed', async () => {
    const { dir, file } = dirWith(`import { helper } from './_helper.mjs';
      import dep from 'dep';
      ${skillWith('{}', `async () => ({ helper, dep, lazy: (await import('./_lazy.mjs')).lazy })`)}`);
    const dep = join(dir, 'node_modules/dep');
    mkdirSync(dep, { recursive: true });
    const write = (version: string): void => {
      writeFileSync(join(dir, '_helper.mjs'), `export const helper = '${version}';`);
      writeFileSync(join(dir, '_lazy.mjs'), `export const lazy = '${version}';`);
      writeFileSync(join(dep, 'index.js'), `module.exports = require('./inner.js');`);
      writeFileSync(join(dep, 'inner.js'), `module.exports = require('./data.json').version;`);
      writeFileSync(join(dep, 'data.json'), JSON.stringify({ version }));
    };
    write('old');
    const pool = await start({ skillsDirs: [hostileDir, dir], size: 1 });
    write('new');
    writeFileSync(file, 'export default {');
    writeFileSync(join(dir, 'added.mjs'), 'export default {');

    await replace(pool);

    expect(await pool.run(request('a/b'), silentHandlers).outcome).toEqual({
      kind: 'completed',
      output: '{"helper":"old","dep":"old","lazy":"old"}',
    });
  });

  test('gives the model the instructions that were loaded at the start', async () => {
    const { dir } = dirWith(skillWith('{}'));
    const folder = join(dir, 'prose');
    mkdirSync(folder);
    const write = (body: string): void =>
      writeFileSync(
        join(folder, 'SKILL.md'),
        `---\nname: prose\ndescription: Prose.\n---\n${body}\n`,
      );
    write('Do the old thing.');
    const pool = await start({ skillsDirs: [hostileDir, dir], size: 1 });
    write('Do the new thing.');
    await replace(pool);
    const asked: string[] = [];
    const handlers = {
      ...silentHandlers,
      async onAsk(_kind: string, payload: unknown) {
        asked.push(JSON.stringify(payload));
        return { text: 'done', isCut: false };
      },
    };

    await pool.run(request('agent-skills/prose', { task: 'Do it.' }), handlers).outcome;

    expect(asked).toEqual([expect.stringContaining('Do the old thing.')]);
  });

  test('fails the runs of a skill that no longer loads, and goes on with the others', async () => {
    const { dir, file } = dirWith(`import { readFileSync } from 'node:fs';
      readFileSync(new URL('./_data', import.meta.url)); ${skillWith('{}')}`);
    writeFileSync(join(dir, '_data'), '');
    const pool = await start({ skillsDirs: [goodDir, hostileDir, dir], size: 1 });
    rmSync(join(dir, '_data'));

    await replace(pool);

    expect(await pool.run(request('a/b'), silentHandlers).outcome).toEqual(notLoaded);
    expect(await wait(pool, 1)).toMatchObject({ kind: 'completed' });
    expect(pool.lines).toContainEqual({
      level: 'warn',
      message: 'a skill no longer loads; its runs fail in this executor',
      executor: expect.any(Number),
      file,
      error: expect.stringMatching(/_data/),
    });
  });

  test('skips a skill that ended the previous executor', async () => {
    const dir = emptyDir();
    writeFileSync(join(dir, 'a.mjs'), diesWhen(dir, 'b'));
    const pool = await start({ skillsDirs: [goodDir, hostileDir, dir], size: 1 });
    expect(await pool.run(request('a/b'), silentHandlers).outcome).toMatchObject({
      kind: 'completed',
    });
    await until(pool, { executors: 2 });
    writeFileSync(join(dir, 'flag'), '');

    // The spare, which was there before the flag, takes the place of the first; both have to go.
    for (const deaths of [1, 2]) {
      await pool.run(request('hostile/kill-for-real'), silentHandlers).outcome;
      await waitFor(() => pool.stats().deaths >= deaths && pool.stats().executors === 2, {
        describe: 'two executors',
      });
    }

    expect(await pool.run(request('a/b'), silentHandlers).outcome).toEqual(notLoaded);
    expect(await wait(pool, 1)).toMatchObject({ kind: 'completed' });
  });

  const notLoaded = {
    kind: 'failed',
    code: 'skill_execution_failed',
    message: "the skill a/v1.0/b no longer loads; the platform's log says why",
    retryable: true,
  };
});

describe('with a debugger', () => {
  test('a paused executor does not count as blocked, and its run does not time out', async () => {
    const pool = await startTestPool({ size: 1, inspectPort: await freePort(), stallMs: 100 });
    pools.push(pool);
    const wanted = request('hostile/busy', { ms: 700 }, { timeoutMs: 100 });
    expect(await pool.run(wanted, silentHandlers).outcome).toMatchObject({ kind: 'completed' });
    expect(pool.stats()).toMatchObject({ executors: 1, deaths: 0 });
    const line = pool.lines.find(({ message }) => /can be debugged/.test(message));
    const targets = await fetch(`http://127.0.0.1:${line?.['port']}/json/list`);
    expect(await targets.json()).toMatchObject([{ type: 'node' }]);
  });
});

describe('stop', () => {
  test('aborts the runs, kills those that do not stop, and leaves no process', async () => {
    // Else a busy machine may end the blocked executor, and move the run beside it, before the pool stops.
    const pool = await start({ size: 2, stallMs: 60_000 });
    const ending = wait(pool, 10_000);
    const blocking = pool.run(request('hostile/endless-loop'), silentHandlers);
    await until(pool, { executors: 2 });
    const stopped = pool.stop(50);
    expect(await pool.run(request('good/echo'), silentHandlers).outcome).toEqual({
      kind: 'aborted',
    });
    await stopped;
    expect(await ending).toEqual({ kind: 'aborted' });
    expect(await blocking.outcome).toEqual({ kind: 'aborted' });
    expect(ownProcesses().size).toBe(0);
    await pool.stop(50);
  });

  test('ends a run that waits', async () => {
    const pool = await start({ size: 1 });
    const alone = (path: string, input: unknown) =>
      pool.run(request(path, input, { alone: true }), silentHandlers);
    const long = alone('good/wait', { ms: 10_000 });
    const first = alone('good/echo', {});
    const second = alone('good/echo', {});
    first.abort('not wanted any more');
    expect(await first.outcome).toEqual({ kind: 'aborted' });
    await pool.stop(0);
    expect(await second.outcome).toEqual({ kind: 'aborted' });
    expect(await long.outcome).toEqual({ kind: 'aborted' });
  });
});

test('a parent that is killed leaves no child, not even a blocked one', {
  timeout: 30_000,
}, async () => {
  const script = fileURLToPath(
    new URL('../../../test/fixtures/skills/orphan-parent.ts', import.meta.url),
  );
  const parent = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pids = line.toString().trim().split(' ').map(Number);
  expect(pids).toHaveLength(4);
  parent.kill('SIGKILL');
  await waitFor(() => pids.every((pid) => !isAlive(pid)), { describe: 'the children are gone' });
});

function skillWith(parameters: string, run = '(input) => input', name = 'b'): string {
  return `export default { category: 'a', name: '${name}', version: 'v1.0', displayName: 'B',
    description: 'B.', parameters: ${parameters}, output: {}, run: ${run} };`;
}

/** A skill that kills the process that loads it once there is a file `flag` in `dir`. */
function diesWhen(dir: string, name: string): string {
  return `import { execSync } from 'node:child_process';
    import { existsSync } from 'node:fs';
    if (existsSync(${JSON.stringify(join(dir, 'flag'))})) execSync('kill -9 ' + process.pid);
    ${skillWith('{}', undefined, name)}`;
}

/** A port that was free just now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
