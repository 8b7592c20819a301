import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ExecutorPool, startExecutorPool } from '../../src/core/executors/pool.ts';
import { createLogger } from '../../src/kernel/log.ts';
import type { Platform } from '../support/platform.ts';
import { acting, play, stagedSkills, startStaged } from '../support/staged.ts';
import { waitFor } from '../support/wait-for.ts';

let pool: ExecutorPool;
let platform: Platform;
let key: string;
beforeAll(async () => {
  pool = await startExecutorPool({
    size: 1,
    memoryMb: 512,
    skillsDirs: stagedSkills,
    env: { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' },
    log: createLogger('silent'),
    idleMs: 1,
    unusedMs: 1,
  });
  platform = await startStaged({ parts: { executors: pool } });
  key = await platform.key();
});
afterAll(() => platform.stop());

const isEmpty = () => {
  const { executors, starting, inFlight } = pool.stats();
  return executors + starting + inFlight === 0;
};
const untilEmpty = () => waitFor(isEmpty, { describe: 'no executor is left' });

test('a platform without runs has no executor, and is healthy', async () => {
  await untilEmpty();

  // The probes look once a second.
  await waitFor(async () => (await platform.request('GET', '/health')).body.uptime > 2, {
    describe: 'the probes have looked',
  });

  expect((await platform.request('GET', '/health')).body.status).toBe('ok');
});

test.each([
  ['the catalog', 'util/v1.0/echo', { text: 'hello' }],
  ['the operator', play, acting()],
])('a run of a skill of %s after that completes', async (_, skill, input) => {
  await untilEmpty();

  const { body } = await platform.run(key, skill, input);

  expect(body).toMatchObject({ status: 'completed', attempt: 1 });
  await untilEmpty();
  expect(pool.stats()).toMatchObject({ deaths: 0 });
});

test('many runs that come at once after that complete', async () => {
  await untilEmpty();

  const runs = Array.from({ length: 20 }, (_, n) =>
    platform.run(key, 'util/v1.0/echo', { text: String(n) }),
  );

  for (const { body } of await Promise.all(runs)) expect(body.status).toBe('completed');
});

test('a refused request starts no executor', async () => {
  await untilEmpty();
  const refusals = await Promise.all([
    platform.request('POST', '/api/util/v1.0/echo', { body: { text: 'x' } }),
    platform.request('POST', '/api/util/v1.0/none', { key, body: {} }),
  ]);
  expect(refusals.map(({ status }) => status)).toEqual([401, 404]);
  expect(isEmpty()).toBe(true);
});
