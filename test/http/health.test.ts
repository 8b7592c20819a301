import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { unavailable } from '../../src/adapters/database/database.ts';
import { MemoryQueue } from '../../src/adapters/queue/memory.ts';
import { startExecutorPool } from '../../src/core/executors/pool.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { manualClock } from '../support/manual-clock.ts';
import { embeddedTest, type Platform } from '../support/platform.ts';
import { stagedSkills, startStaged } from '../support/staged.ts';
import { patient, waitFor } from '../support/wait-for.ts';

const log = createLogger('silent');

/** A platform whose parts fail while a test says so. */
async function startFragile() {
  const failing = {
    ...{ queue: false, executors: false, disk: false },
    database: 'no' as 'no' | 'fails' | 'hangs',
  };
  const queue = new MemoryQueue(log);
  const executors = await startExecutorPool({
    size: 1,
    memoryMb: 512,
    skillsDirs: stagedSkills,
    env: {},
    log,
  });
  const { stats } = executors;
  const { isConnected } = queue;
  Object.assign(queue, { isConnected: () => !failing.queue && isConnected.call(queue) });
  const platform = await startStaged({
    parts: {
      queue,
      executors: Object.assign(executors, {
        stats: () => ({
          ...stats.call(executors),
          ...(failing.executors ? { executors: 0, failedStarts: 1 } : {}),
        }),
      }),
    },
  });
  const { ping, write } = platform.database;
  Object.assign(platform.database, {
    ping() {
      if (failing.database === 'fails') return Promise.reject(new Error('It is down'));
      return failing.database === 'hangs' ? new Promise(() => {}) : ping();
    },
    // What SQLite says of a full disk.
    write: (unit: Parameters<typeof write>[0]) =>
      failing.disk
        ? Promise.reject(unavailable(Object.assign(new Error('disk is full'), { errcode: 13 })))
        : write(unit),
  });
  return { platform, failing };
}

let platform: Platform;
let failing: Awaited<ReturnType<typeof startFragile>>['failing'];
beforeAll(async () => {
  ({ platform, failing } = await startFragile());
});
afterAll(() => platform.stop());

const health = () => platform.request('GET', '/health');

function statusIs(status: string) {
  return waitFor(
    async () => {
      const answer = await health();
      return answer.body.status === status ? answer : null;
    },
    { describe: `/health says ${status}` },
  );
}

describe('GET /health', () => {
  test('answers 200 with status, version and uptime, and no other field', async () => {
    const answer = await statusIs('ok');

    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json\b/);
    expect(answer.body).toEqual({
      status: 'ok',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      uptime: expect.any(Number),
    });
    expect(answer.body.uptime).toBeGreaterThanOrEqual(0);
    expect((await platform.request('HEAD', '/health')).status).toBe(200);
  });

  test('is degraded, with 200, while a subsystem that is not critical is impaired', async () => {
    failing.executors = true;
    const degraded = await statusIs('degraded');
    failing.executors = false;
    const ok = await statusIs('ok');

    expect(degraded.status).toBe(200);
    expect(Object.keys(degraded.body).sort()).toEqual(['status', 'uptime', 'version']);
    expect(ok.status).toBe(200);
  });

  test.each(['queue', 'database'] as const)(
    'is unhealthy, with 503, while the %s is down',
    async (part) => {
      Object.assign(failing, part === 'queue' ? { queue: true } : { database: 'fails' });
      const unhealthy = await statusIs('unhealthy');
      Object.assign(failing, { queue: false, database: 'no' });
      const ok = await statusIs('ok');

      expect(unhealthy.status).toBe(503);
      expect(unhealthy.body).toEqual({
        status: 'unhealthy',
        version: expect.any(String),
        uptime: expect.any(Number),
      });
      expect(ok.status).toBe(200);
    },
  );

  test('is unhealthy after a write that the database refused, until one succeeds', async () => {
    failing.disk = true;
    const refused = await platform.admin('POST', '/admin/api-keys', {
      client_name: 'a',
      scopes: ['*'],
    });
    const unhealthy = await statusIs('unhealthy');
    const metric = await platform.request('GET', '/metrics');
    failing.disk = false;
    await statusIs('ok');

    expect(refused.status).toBe(503);
    expect(unhealthy.status).toBe(503);
    expect(metric.text).toMatch(/^service_database_writable 0$/m);
    const after = await platform.request('GET', '/metrics');
    expect(after.text).toMatch(/^service_database_writable 1$/m);
  });

  test('is unhealthy, not degraded, when both are true', async () => {
    Object.assign(failing, { executors: true, database: 'fails' });
    const answer = await statusIs('unhealthy');
    Object.assign(failing, { executors: false, database: 'no' });
    await statusIs('ok');

    expect(answer.status).toBe(503);
  });

  // Last, as a probe that hangs never comes back.
  test('answers within 100 ms while the database hangs, and says so', async () => {
    failing.database = 'hangs';
    await statusIs('unhealthy');
    const times: number[] = [];
    for (let i = 0; i < 5; i++) {
      const before = performance.now();
      await health();
      times.push(performance.now() - before);
    }

    // The machine may be busy with something else, but not five times.
    expect(Math.min(...times)).toBeLessThan(patient(100));
  });
});

embeddedTest('uptime is seconds since the start, independent of the wall clock', async () => {
  const clock = manualClock();
  const other = await startStaged({ clock });
  const uptime = async () => (await other.request('GET', '/health')).body.uptime;
  const before = await uptime();

  clock.advance(90_500);
  const after = await uptime();
  clock.jumpTo(0);
  const stepped = await uptime();

  await other.stop();
  expect(after - before).toBeCloseTo(90.5);
  expect(stepped).toBe(after);
});
