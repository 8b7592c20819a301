/**
 * A start that cannot be stops with code 1 and a sentence that says what to do, before anything
 * listens, and leaves nothing behind.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { childProcesses } from '../fixtures/skills/driver.ts';
import { adminSecret } from '../support/platform.ts';
import { inherited, spawnPlatform, startProcess } from '../support/process.ts';
import { acting, gate } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const staged = join(import.meta.dirname, '../fixtures/skills/staged');

let directory: string;
let dataDir: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'skillwright-start-'));
  dataDir = join(directory, 'data');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Starts a process that has to give up; what it said to a person, line by line. */
async function refusedStart(environment: Record<string, string>): Promise<string[]> {
  // Tests of other files share this process, and have left it their executors.
  const before = executors();
  const { exit, output } = spawnPlatform({ DATA_DIR: dataDir, EXECUTORS: '1', ...environment });

  expect(await exit).toEqual({ code: 1, signal: null });
  expect(output()).not.toContain('is ready');
  expect(output()).not.toMatch(/^\s+at /m);
  await waitFor(() => executors().isSubsetOf(before), { describe: 'no executor is left' });
  return output()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('{'));
}

/** The ids of the executors below this process. */
function executors(): Set<number> {
  const commands = [...childProcesses()];
  return new Set(
    commands.flatMap(([pid, command]) => (command.includes('src/core/executors') ? [pid] : [])),
  );
}

/** A directory of skills with these files. */
function skills(files: Record<string, string>): string {
  const root = join(directory, 'skills');
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

const skill = (fields: string) =>
  `export default {
     category: 'mine', name: 'one', version: 'v1.0', displayName: 'One', description: 'One.',
     parameters: {}, output: {}, run() {}, ${fields}
   };`;

test('a start ends with the shell in which npm runs it, also before it is ready', async () => {
  const file = join(import.meta.dirname, '../../src/start.js');
  const shell = spawn('/bin/sh', ['-c', `"${process.execPath}" "${file}" & echo $!; wait`], {
    env: {
      ...inherited(),
      ...{ PORT: '0', ADMIN_SECRET: adminSecret, DATA_DIR: dataDir, EXECUTORS: '1' },
      npm_lifecycle_event: 'start',
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = (await once(shell.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString().split('\n')[0]);
  /** Also one that is not reaped yet. */
  const hasEnded = () => {
    try {
      return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
    } catch {
      return true;
    }
  };
  onTestFinished(() => void (hasEnded() || process.kill(pid, 'SIGKILL')));
  await waitFor(() => existsSync(dataDir), { describe: 'the start is under way' });

  shell.kill('SIGKILL');

  await waitFor(hasEnded, { describe: 'the platform has ended, too', deadlineMs: 60_000 });
});

describe('a second process on the same data directory', () => {
  test('is refused with a sentence while the first goes on, and may start when that was killed', async () => {
    const first = await startProcess(dataDir, { EXECUTORS: '1' });
    const tenant = await newTenant(first);

    const said = await refusedStart({});

    expect(said).toHaveLength(1);
    expect(said[0]).toContain(dataDir);
    expect(said[0]).toMatch(/in use by another/);
    expect((await tenant.run('util/v1.0/echo', { text: 'x' })).status).toBe(200);

    first.signal('SIGKILL');
    await first.exit;
    const second = await startProcess(dataDir, { EXECUTORS: '1' });

    expect((await second.request('GET', '/api/agents', { key: tenant.key })).status).toBe(200);
    await second.stop();
  });
});

describe('a bad environment', () => {
  test('is named with what was expected, all faults at once', async () => {
    const said = await refusedStart({
      PORT: '70000',
      HOST: '',
      ADMIN_SECRET: '',
      LOG_LEVEL: 'loud',
      EXECUTORS: '0',
      WORKER_CONCURRENCY: 'many',
      EXECUTOR_MEMORY_MB: '1',
      RETRY_BACKOFF_MS: '-1',
      JOB_LEASE_MS: '1.5',
      SKILLS_ALLOW_CIDRS: 'banana',
      RETENTION_DAYS: '0',
      SHUTDOWN_GRACE_MS: 'x',
      DATABASE_URL: 'mysql://db',
      SKILLS_DIR: '/none',
    });

    const text = said.join('\n');
    for (const name of [
      ...['PORT', 'HOST', 'ADMIN_SECRET', 'LOG_LEVEL', 'EXECUTORS', 'WORKER_CONCURRENCY'],
      ...['EXECUTOR_MEMORY_MB', 'RETRY_BACKOFF_MS', 'JOB_LEASE_MS', 'SKILLS_ALLOW_CIDRS'],
      ...['RETENTION_DAYS', 'SHUTDOWN_GRACE_MS', 'DATABASE_URL'],
    ]) {
      expect(text).toMatch(new RegExp(`^\\s*${name}=.*: expected \\S`, 'm'));
    }
    expect(text).toContain('SKILLS_DIR=/none: there is no such directory');
    expect(said).toHaveLength(15);
  });

  test('an empty ADMIN_SECRET is refused', async () => {
    for (const ADMIN_SECRET of ['', ' ']) {
      expect((await refusedStart({ ADMIN_SECRET })).join()).toContain('ADMIN_SECRET');
    }
  });

  test('a port that is taken is named', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };

    const said = await refusedStart({ PORT: String(port) });

    server.close();
    expect(said).toHaveLength(1);
    expect(said[0]).toContain(String(port));
    expect(said[0]).toContain('PORT');
  });

  test.each([
    ['a host that is not of this machine', { HOST: '192.0.2.1' }, /^HOST\b/],
    [
      'a database that is not there',
      { DATABASE_URL: 'postgres://127.0.0.1:1/x' },
      /database.*127\.0\.0\.1:1/,
    ],
    [
      'a directory of skills that is not there',
      { SKILLS_DIR: '/no/such/directory' },
      /SKILLS_DIR.*\/no\/such/,
    ],
  ])('so is %s', async (_what, environment, sentence) => {
    const said = await refusedStart(environment as never);

    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(sentence);
  });
});

test('a start that gives up costs no job an attempt', async () => {
  const environment = { EXECUTORS: '1', SKILLS_DIR: staged };
  const first = await startProcess(dataDir, { ...environment, WORKER_CONCURRENCY: '1' });
  const tenant = await newTenant(first);
  const end = gate();
  const holder = await tenant.start('staged/v1.0/play-once', acting({ until: end.path }));
  await tenant.jobIn(holder, 'active');
  const jobId = await tenant.start('staged/v1.0/play-once', acting({ until: end.path }));
  first.signal('SIGKILL');
  await first.exit;
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };

  await refusedStart({ PORT: String(port), SKILLS_DIR: staged });

  server.close();
  end.open();
  const next = await startProcess(dataDir, environment);
  const { body } = await next.jobIn(tenant.key, jobId, 'completed', 'failed');
  await next.stop();
  expect(body).toMatchObject({ status: 'completed', attempt: 1 });
});

describe('a data directory that cannot be used', () => {
  test('because it is a file', async () => {
    writeFileSync(dataDir, '');

    expect(await refusedStart({})).toEqual([expect.stringContaining(dataDir)]);
  });

  test('because what is in it is no database', async () => {
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, 'skillwright.db'), 'nonsense'.repeat(1_000));

    expect(await refusedStart({})).toEqual([
      expect.stringMatching(
        /^The database \S+ is damaged \(file is not a database\): .*restore a backup/,
      ),
    ]);
  });

  test('because a newer Skillwright has used it', async () => {
    await (await startProcess(dataDir, { EXECUTORS: '1' })).stop();
    const store = new DatabaseSync(join(dataDir, 'skillwright.db'));
    store.exec("INSERT INTO kysely_migration VALUES ('9999-future', '2030-01-01')");
    store.close();

    expect(await refusedStart({})).toEqual([
      expect.stringMatching(/newer Skillwright.*9999-future/),
    ]);
  });
});

// Every other fault of a skill has its sentence in src/core/skills/sources/modules.test.ts, or in pool.lifecycle.test.ts.
describe('a bad skill stops the start with one sentence that names the file and the fault', () => {
  test.each<[string, Record<string, string>, string, RegExp]>([
    ['a module that does not parse', { 'a.ts': 'export default {' }, 'a.ts', /cannot be loaded/],
    [
      'a duplicate of the catalog',
      { 'deep/er/a.ts': skill("category: 'util', name: 'echo'") },
      'deep/er/a.ts',
      /util\/v1\.0\/echo/,
    ],
    [
      'a module that ends the process',
      { 'a.ts': 'process.exit(0)' },
      'a.ts',
      /end(ed)? (its|the) process/,
    ],
  ])('%s', async (_what, files, file, fault) => {
    const root = skills(files);

    const said = await refusedStart({ SKILLS_DIR: root });

    expect(said).toHaveLength(1);
    expect(said[0]).toContain(join(root, file));
    expect(said[0]).toMatch(fault);
  });

  test('a module whose top level never ends is named too', async () => {
    const root = skills({ 'a.ts': 'await new Promise(() => setInterval(() => {}, 1000))' });

    const said = await refusedStart({ SKILLS_DIR: root, SKILL_LOAD_MS: '10000' });

    expect(said).toEqual([expect.stringContaining(join(root, 'a.ts'))]);
  });

  test('what is no module is passed over, and good ones run', async () => {
    const root = skills({
      'one.ts': skill("run: () => 'mine'"),
      'notes.md': '# not a skill',
      '_shared.ts': 'throw new Error("not loaded")',
      'one.test.ts': 'throw new Error("not loaded")',
      'types.d.ts': 'nonsense',
    });
    const platform = await startProcess(dataDir, { EXECUTORS: '1', SKILLS_DIR: root });
    const tenant = await newTenant(platform);

    const { body } = await tenant.run('mine/v1.0/one', {});

    await platform.stop();
    expect(body).toMatchObject({ status: 'completed', output: 'mine' });
  });
});
