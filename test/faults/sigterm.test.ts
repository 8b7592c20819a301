/**
 * SIGTERM (docs/decisions/jobs.md): what was accepted is answered and not lost, runs end before the stop or
 * after the next start, and the process ends with 0 in time. The process that a test starts last is the next one's
 * first.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { childProcesses } from '../fixtures/skills/driver.ts';
import { follow } from '../support/event-stream.ts';
import { type PlatformProcess, spawnPlatform, startProcess } from '../support/process.ts';
import { openRaw } from '../support/raw-http.ts';
import { rounds } from '../support/soak.ts';
import { acting, beginning, gate, play } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { patient, waitFor } from '../support/wait-for.ts';

const staged = join(import.meta.dirname, '../fixtures/skills/staged');
const graceMs = 3_000;

const short = { SHUTDOWN_GRACE_MS: '200' };

let dataDir: string;
/** The process that was started last, while it lives. */
let living: { readonly platform: PlatformProcess; readonly variables: string } | undefined;
beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'skillwright-sigterm-'));
});
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') await killLiving();
});
afterAll(async () => {
  await killLiving();
  rmSync(dataDir, { recursive: true, force: true });
});

async function killLiving(): Promise<void> {
  living?.platform.signal('SIGKILL');
  await living?.platform.exit;
}

/** A process with these settings: the one that the last test has left, or a new one. */
async function start(environment: Record<string, string> = {}): Promise<PlatformProcess> {
  const variables = JSON.stringify(environment);
  if (living?.variables === variables) return living.platform;
  await killLiving();
  const platform = await startProcess(dataDir, {
    EXECUTORS: '1',
    SKILLS_DIR: staged,
    RETRY_BACKOFF_MS: '10',
    SHUTDOWN_GRACE_MS: String(graceMs),
    ...environment,
  });
  living = { platform, variables };
  void platform.exit.then(() => {
    living = undefined;
  });
  return platform;
}

/** SIGTERM; how long the end took. It has to be a clean one. */
async function terminate(platform: PlatformProcess): Promise<number> {
  const began = performance.now();
  platform.signal('SIGTERM');
  expect(await platform.exit).toEqual({ code: 0, signal: null });
  return performance.now() - began;
}

/** A job of play that runs and waits at a gate. */
async function startRun(tenant: Tenant, end: { path: string }): Promise<string> {
  const begun = beginning();
  const input = { ...acting(begun.step, { until: end.path }), output: 'done' };
  const jobId = await tenant.start(play, input);
  await begun.shown();
  return jobId;
}

describe('SIGTERM', () => {
  test('when nothing goes on: exit 0 at once, and no child is left', async () => {
    const platform = await start();
    const children = [...childProcesses(platform.pid).keys()];
    expect(children.length).toBeGreaterThan(0);

    expect(await terminate(platform)).toBeLessThan(graceMs);

    await waitFor(() => children.every((pid) => !isAlive(pid)), { describe: 'children are gone' });
  });

  test('idle keep-alive connections do not hold it up', async () => {
    const platform = await start();
    const connections = Array.from({ length: 50 }, () => openRaw(platform.url));
    for (const connection of connections) {
      connection.send('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
      await connection.answers(1);
    }

    expect(await terminate(platform)).toBeLessThan(graceMs);

    for (const connection of connections) await connection.closed();
  });

  test('a client that waits for the end of a run is answered', async () => {
    const platform = await start();
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await startRun(tenant, end);
    const waiting = Promise.all([
      tenant.post(`/api/${play}`, acting({ until: end.path }), { prefer: 'wait=60' }),
      tenant.get(`/api/jobs/${jobId}`, { prefer: 'wait=60' }),
    ]);
    await waitFor(async () => (await tenant.get('/api/jobs')).body.total === 2, {
      describe: 'the second job is accepted',
    });

    await terminate(platform);

    const [accepted, job] = await waiting;
    expect(accepted.status).toBe(202);
    expect(job.status).toBe(200);
    const next = await start();
    end.open();
    for (const id of [jobId, accepted.body.job_id]) {
      expect((await next.jobIn(tenant.key, id, 'completed')).status).toBe(200);
    }
  });

  test('clients that go on asking get no 5xx, and what was accepted is not lost', async () => {
    const platform = await start();
    const tenant = await newTenant(platform);
    const accepted: string[] = [];
    const statuses = new Set<number>();
    const ask = async () => {
      for (;;) {
        try {
          const answer = await tenant.post('/api/util/v1.0/echo', { text: 'x' });
          statuses.add(answer.status);
          if (answer.status === 202) accepted.push(answer.body.job_id);
        } catch {
          return;
        }
      }
    };
    const clients = Promise.all(Array.from({ length: 8 }, ask));
    await waitFor(() => accepted.length > 100, { describe: 'there is load' });

    await terminate(platform);
    await clients;

    expect([...statuses]).toEqual([202]);
    const next = await start();
    for (const jobId of accepted) await next.jobIn(tenant.key, jobId, 'completed');
    const { body } = await next.request('GET', '/api/jobs?limit=1', { key: tenant.key });
    // One whose answer was lost with the connection may have been accepted for each client.
    expect(body.total).toBeGreaterThanOrEqual(accepted.length);
    expect(body.total).toBeLessThanOrEqual(accepted.length + 8);
  });

  test('a request whose body is half sent may be finished', async () => {
    const platform = await start();
    const { key } = await newTenant(platform);
    const connection = openRaw(platform.url);
    const body = '{"text":"slow"}';
    connection.send(
      `POST /api/util/v1.0/echo HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
    );
    // That its head has been read shows in what the next request of the key has left.
    await waitFor(
      async () => {
        const { headers } = await platform.request('GET', '/api/agents', { key });
        return Number(headers.get('x-ratelimit-remaining')) < 1_000_000 - 1;
      },
      { describe: 'the request has begun' },
    );

    platform.signal('SIGTERM');
    await waitFor(() => platform.output().includes('stopping'), { describe: 'it is stopping' });
    connection.send(body.slice(5));

    const [answer] = await connection.closed();
    expect(answer?.status).toBe(202);
    expect(answer?.headers['connection']).toBe('close');
    expect(await platform.exit).toEqual({ code: 0, signal: null });
    const next = await start();
    const job = await next.jobIn(key, answer?.body.job_id, 'completed');
    expect(job.body.output).toEqual({ text: 'slow' });
  });

  test('an active run completes before the stop, when it does so within the grace', async () => {
    const platform = await start();
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await startRun(tenant, end);

    platform.signal('SIGTERM');
    await waitFor(() => platform.output().includes('stopping'), { describe: 'it is stopping' });
    end.open();
    expect(await platform.exit).toEqual({ code: 0, signal: null });

    const next = await start(short);
    const { body } = await next.request('GET', `/api/jobs/${jobId}`, { key: tenant.key });
    expect(body).toMatchObject({ status: 'completed', output: 'done', attempt: 1 });
  });

  test('or completes after the next start, at no cost of an attempt', async () => {
    const platform = await start(short);
    const tenant = await newTenant(platform);
    const end = gate();
    const jobIds = [await startRun(tenant, end), await startRun(tenant, end)];

    await terminate(platform);
    const next = await start(short);
    end.open();

    for (const jobId of jobIds) {
      const { body } = await next.jobIn(tenant.key, jobId, 'completed', 'failed');
      expect(body).toMatchObject({ status: 'completed', output: 'done', attempt: 1 });
    }
  });

  test('so does one that listens to no signal', async () => {
    const platform = await start(short);
    const tenant = await newTenant(platform);
    const [begun, end] = [beginning(), gate()];
    const jobId = await tenant.start(play, acting(begun.step, { stubbornUntil: end.path }));
    await begun.shown();

    expect(await terminate(platform)).toBeLessThan(patient(10_000));
    const next = await start(short);
    end.open();

    const { body } = await next.jobIn(tenant.key, jobId, 'completed', 'failed');
    expect(body).toMatchObject({ status: 'completed', attempt: 1 });
  });

  test('the stream of a job ends, and goes on at the next start from where it was', async () => {
    const platform = await start(short);
    const tenant = await newTenant(platform);
    const end = gate();
    const input = { ...acting({ log: 'one' }, { until: end.path }, { log: 'two' }), output: 1 };
    const jobId = await tenant.start(play, input);
    const key = { 'x-api-key': tenant.key };
    const stream = await follow(`${platform.url}/api/jobs/${jobId}/events`, key);
    const { id } = await stream.event(({ event }) => event === 'log', 'the first line');

    await terminate(platform);
    await stream.ended;
    const next = await start(short);
    end.open();
    const rest = await follow(`${next.url}/api/jobs/${jobId}/events`, {
      ...key,
      'last-event-id': id,
    });

    const events = await rest.ended;
    expect(events.map(({ data }) => data.message ?? data.status)).toEqual([
      ...['queued', 'active', 'one', 'two', 'completed'],
    ]);
  });

  test('a request whose body is never sent is cut at the end of the grace', async () => {
    const platform = await start(short);
    const { key } = await newTenant(platform);
    const connection = openRaw(platform.url);
    connection.send(
      `POST /api/util/v1.0/echo HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"te`,
    );
    const silent = openRaw(platform.url);
    silent.send('GET /health HT');

    const took = await terminate(platform);

    expect(took).toBeLessThan(patient(10_000));
    await Promise.all([connection.closed(), silent.closed()]);
  });

  test('a second signal ends the process at once', async () => {
    const platform = await start({ SHUTDOWN_GRACE_MS: '25000' });
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await startRun(tenant, end);

    platform.signal('SIGTERM');
    await waitFor(() => platform.output().includes('stopping'), { describe: 'it is stopping' });
    const began = performance.now();
    platform.signal('SIGTERM');
    await platform.exit;

    expect(performance.now() - began).toBeLessThan(patient(10_000));
    end.open();
    const next = await start();
    const { body } = await next.jobIn(tenant.key, jobId, 'completed', 'failed');
    expect(body.status).toBe('completed');
  });

  test('SIGINT does the same', async () => {
    const platform = await start();

    platform.signal('SIGINT');

    expect(await platform.exit).toEqual({ code: 0, signal: null });
  });
});

describe('SIGTERM during the start', () => {
  test('ends it soon, whenever it comes, and the next start finds all in order', async () => {
    const first = await start();
    const tenant = await newTenant(first);
    const { body } = await tenant.run('util/v1.0/echo', { text: 'x' });
    await terminate(first);
    for (let afterMs = 0; afterMs < 600; afterMs += rounds(300, 40)) {
      const { child, exit, output } = spawnPlatform({ DATA_DIR: dataDir, EXECUTORS: '1' });
      const began = performance.now();
      await waitFor(() => performance.now() - began >= afterMs, {
        describe: 'it is time',
        everyMs: 1,
      });

      child.kill('SIGTERM');

      const { code, signal } = await exit;
      // Before the program has begun, the signal itself ends the process.
      expect([
        [0, null],
        [null, 'SIGTERM'],
      ]).toContainEqual([code, signal]);
      expect(output()).not.toMatch(/Error|error/);
    }

    const last = await start();
    const { status } = await last.request('GET', `/api/jobs/${body.job_id}`, { key: tenant.key });
    expect(status).toBe(200);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
