/**
 * A deploy of a single process (docs/operations.md): its port is never closed, each request is answered, and no run is
 * lost. The new process takes over the socket from the earlier one, or from the service manager.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { replaceSocket } from '../../src/core/config/replacement.ts';
import { adminSecret, clientOf } from '../support/platform.ts';
import { inherited, spawnCommand, startProcess } from '../support/process.ts';
import { rounds } from '../support/soak.ts';
import { acting, gate, play } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { patient, waitFor } from '../support/wait-for.ts';

const main = join(import.meta.dirname, '../../src/start.js');
const staged = join(import.meta.dirname, '../fixtures/skills/staged');
const settings = { EXECUTORS: '1', SKILLS_DIR: staged, SHUTDOWN_GRACE_MS: '20000' };

let dataDir: string;
/** Processes that may still run. */
const pids = new Set<number>();
beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'skillwright-replace-'));
});
afterEach(async () => {
  for (const pid of pids) signal(pid, 'SIGKILL');
  await waitFor(() => [...pids].every((pid) => !signal(pid, 0)), { describe: 'all have ended' });
  pids.clear();
});
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

/** Whether there is such a process. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

async function start(environment: Record<string, string> = {}) {
  const platform = await startProcess(dataDir, { ...settings, ...environment });
  pids.add(platform.pid);
  return platform;
}

/** Runs `start --replace`; its exit code and what it printed. */
async function replace(environment: Record<string, string> = {}) {
  const variables = { ...settings, PORT: '0', DATA_DIR: dataDir, ...environment };
  const { exit, output } = spawnCommand('start', variables, ['--replace']);
  const { code } = await exit;
  const [, pid] = /The process (\d+) has taken over/.exec(output()) ?? [];
  if (pid !== undefined) pids.add(Number(pid));
  return { code, pid: Number(pid), output: output() };
}

/**
 * Clients that post one job after the other until they are stopped. They wait for each fourth job to end: accepting
 * is quicker than running, so the jobs of a minute on a busy machine would else take longer than a test waits.
 */
function postConstantly({ post, jobIn }: Tenant) {
  const accepted: string[] = [];
  const failures: unknown[] = [];
  let longestMs = 0;
  let lastAt = performance.now();
  let isStopped = false;
  const client = async () => {
    while (!isStopped) {
      const answer = await post('/api/util/v1.0/echo', { text: 'x' }).catch((error) => error);
      if (answer.status !== 202) {
        failures.push(answer);
        await pause(50);
        continue;
      }
      accepted.push(answer.body.job_id);
      longestMs = Math.max(longestMs, performance.now() - lastAt);
      lastAt = performance.now();
      if (accepted.length % 4 === 0) await jobIn(answer.body.job_id, 'completed');
      // The machine has other work than this.
      await pause(10);
    }
  };
  const clients = Promise.all(Array.from({ length: rounds(4, 16) }, client));
  return {
    accepted,
    failures,
    longestMs: () => longestMs,
    async more() {
      const before = accepted.length;
      await waitFor(() => accepted.length > before + rounds(40, 100), {
        describe: 'more is accepted',
      });
    },
    async stop() {
      isStopped = true;
      await clients;
    },
  };
}

/** Each accepted job has ended after one attempt, and there are no others than these. */
async function expectEachOnce(tenant: Tenant, accepted: readonly string[]): Promise<void> {
  const jobs = `SELECT id FROM jobs WHERE organization_id = '${tenant.organization}'`;
  await waitFor(() => rowsOf(`${jobs} AND status IN ('queued', 'active')`).length === 0, {
    describe: 'all have ended',
  });
  const once = rowsOf(`${jobs} AND status = 'completed' AND attempt = 1 AND epoch = 1`);
  expect(once.map(({ id }) => id).toSorted()).toEqual(accepted.toSorted());
  expect(rowsOf(jobs).length).toBe(accepted.length);
}

function rowsOf(sql: string) {
  const database = new DatabaseSync(join(dataDir, 'skillwright.db'), { readOnly: true });
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
}

test('start --replace under load: each request is answered, and each job runs once', async () => {
  const platform = await start();
  const tenant = await newTenant(platform);
  const end = gate();
  const running = await tenant.start(play, { ...acting({ until: end.path }), output: 'done' });
  await tenant.jobIn(running, 'active');
  const load = postConstantly(tenant);
  await load.more();

  const replacing = replace();
  await waitFor(() => platform.output().includes('to take the place of this one'), {
    describe: 'the new process loads',
  });
  // The earlier process accepts and runs jobs while it waits for that run.
  const [loading = ''] = load.accepted.slice(-1);
  await tenant.jobIn(loading, 'completed');
  await load.more();
  await tenant.jobIn(load.accepted.at(-1) ?? '', 'completed');
  end.open();
  const { code, pid } = await replacing;
  await waitFor(() => !signal(platform.pid, 0), { describe: 'the earlier process has ended' });
  await load.more();
  await load.stop();

  expect([code, signal(pid, 0)]).toEqual([0, true]);
  expect(load.failures).toEqual([]);
  // A start takes half a second on an idle machine; tests share theirs.
  expect(load.longestMs()).toBeLessThan(patient(10_000));
  await expectEachOnce(tenant, [running, ...load.accepted]);
});

test('a new process that does not load changes nothing', async () => {
  const platform = await start();
  const broken = join(dataDir, 'broken');
  mkdirSync(broken);
  writeFileSync(join(broken, 'skill.ts'), 'export default {};');

  const { code, output } = await replace({ SKILLS_DIR: broken });

  expect(code).toBe(1);
  expect(output).toMatch(/The running platform goes on: .*skill\.ts/);
  expect((await platform.request('GET', '/health')).status).toBe(200);
});

test('after one that loads and does not start, the earlier program starts again', async () => {
  const port = await freePort();
  const platform = await start({ PORT: port });
  const script = `process.send({ state: 'loaded' }); process.once('message', () => process.exit(3))`;
  const request = { program: process.execPath, args: ['-e', script], cwd: '/', env: {} };

  const socket = createConnection(replaceSocket({ dataDir, port: Number(port) }));
  socket.write(`${JSON.stringify(request)}\n`);
  const answer = JSON.parse(await text(socket));

  expect(answer.reason).toContain('ended with 3 (the earlier program was started again)');
  const again = () => platform.output().match(/"pid":\d+[^\n]*is ready/g)?.[1];
  const line = await waitFor(again, { describe: 'it is ready again' });
  pids.add(Number(/"pid":(\d+)/.exec(line)?.[1]));
  expect((await platform.request('GET', '/health')).status).toBe(200);
});

test('with nothing to replace, start --replace says so', async () => {
  const { code, output } = await replace();

  expect(code).toBe(4);
  expect(output).toContain('there is none to replace');
});

test('under a service manager that holds the socket, a restart refuses no request', async () => {
  const server = await listening();
  const { port } = server.address() as { port: number };
  const manager = startManager(server);
  server.close();
  const tenant = await newTenant(clientOf(`http://127.0.0.1:${port}`));
  const load = postConstantly(tenant);
  await load.more();
  const [first] = manager.starts();

  signal(first as number, 'SIGTERM');
  await waitFor(() => manager.starts().length === 2, { describe: 'it starts again' });
  for (const pid of manager.starts()) pids.add(pid);
  await load.more();
  await load.stop();

  expect(load.failures).toEqual([]);
  await expectEachOnce(tenant, load.accepted);
});

/** A shell that starts the platform, and once more when it ends; both inherit the socket. */
function startManager(server: Server) {
  // Node does not document this property.
  const handle = (server as unknown as Record<string, { fd: number }>)['_handle'];
  const script = '"$0" "$1"; exec "$0" "$1"';
  const shell = spawn('sh', ['-c', script, process.execPath, main], {
    env: {
      ...inherited(),
      ...settings,
      DATA_DIR: dataDir,
      LISTEN_FDS: '1',
      ADMIN_SECRET: adminSecret,
    },
    stdio: ['ignore', 'pipe', 'inherit', handle?.fd],
  });
  pids.add(shell.pid as number);
  let output = '';
  shell.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
  const starts = () =>
    [...output.matchAll(/"pid":(\d+)[^\n]*is ready/g)].map(([, pid]) => Number(pid));
  return { starts };
}

async function listening(): Promise<Server> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  return server;
}

async function freePort(): Promise<string> {
  const server = await listening();
  const { port } = server.address() as { port: number };
  server.close();
  return String(port);
}
