/** Runs that wait, as a client sees them: each step has its effect once, and a wait outlives the process. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { ErrandAct } from '../fixtures/skills/staged/errand.ts';
import { embeddedTest, type Platform } from '../support/platform.ts';
import { startProcess } from '../support/process.ts';
import { dataDirectory, stagedSkills, startStaged } from '../support/staged.ts';

const errand = 'staged/v1.0/errand';

type Client = Pick<Platform, 'request' | 'jobIn'>;

/** A file for effects, and what stands in it. */
function effects() {
  const log = join(dataDirectory(), 'effects');
  return { log, read: () => readFileSync(log, 'utf8').trim().split('\n') };
}

async function accepted({ request }: Client, key: string, log: string, ...acts: ErrandAct[]) {
  const { status, body } = await request('POST', `/api/${errand}`, { key, body: { log, acts } });
  expect(status).toBe(202);
  return body.job_id as string;
}

async function staged() {
  const platform = await startStaged();
  onTestFinished(() => platform.stop());
  return { platform, key: await platform.key() };
}

test('a run steps, sleeps without an attempt, and completes', async () => {
  const { platform, key } = await staged();
  const { log, read } = effects();

  const id = await accepted(platform, key, log, { step: 'a' }, { sleep: 300 }, { step: 'b' });
  const waiting = await platform.jobIn(key, id, 'waiting');
  expect(waiting.body).toMatchObject({ status: 'waiting', attempt: 1, resumed_at: null });
  const ended = await platform.jobIn(key, id, 'completed', 'failed');

  expect(ended.body).toMatchObject({
    status: 'completed',
    attempt: 1,
    resumed_at: expect.any(String),
    output: { results: ['a', null, 'b'], attempt: 1 },
  });
  expect(read()).toEqual(['a', 'b']);
  const steps = await platform.request('GET', `/api/jobs/${id}/steps`, { key });
  expect(steps.body.data).toMatchObject([
    { step: 1, kind: 'step', name: 'a', status: 'completed' },
    { step: 2, kind: 'sleep', name: 'nap', status: 'completed' },
    { step: 3, kind: 'step', name: 'b', status: 'completed' },
  ]);
});

test('several waits in a row, in a called skill too, run each step once', async () => {
  const { platform, key } = await staged();
  const { log, read } = effects();
  const inner = { log, acts: [{ step: 'in' }, { sleep: 50 }, { step: 'in' }] };

  const id = await accepted(
    platform,
    key,
    log,
    { sleep: 50 },
    { step: 'a' },
    { call: { skill: errand, input: inner } },
    { sleep: 50 },
    { steps: 5 },
    { sleep: 50 },
  );
  const ended = await platform.jobIn(key, id, 'completed', 'failed');

  expect(ended.body).toMatchObject({ status: 'completed', attempt: 1 });
  const many = [0, 1, 2, 3, 4].map((i) => `many ${i}`);
  expect(read().sort()).toEqual(['a', 'in', 'in', ...many].sort());
});

test('code around a wait does not notice that the run is unloaded', async () => {
  const { platform, key } = await staged();
  const { log, read } = effects();

  const id = await accepted(platform, key, log, { guardedSleep: 100 }, { step: 'a' });
  const ended = await platform.jobIn(key, id, 'completed', 'failed');

  expect(ended.body).toMatchObject({ status: 'completed' });
  expect(read()).toEqual(['finally', 'a']);
});

test('a run may end before a wait that it does not need', async () => {
  const { platform, key } = await staged();
  const { log, read } = effects();

  const id = await accepted(platform, key, log, { race: 3_600_000 });
  const ended = await platform.jobIn(key, id, 'completed', 'failed');

  expect(ended.body).toMatchObject({ status: 'completed', output: { results: ['fast'] } });
  expect(read()).toEqual(['fast']);
});

test('a waiting run is cancelled at once', async () => {
  const { platform, key } = await staged();
  const id = await accepted(platform, key, effects().log, { sleep: 3_600_000 });
  await platform.jobIn(key, id, 'waiting');

  const cancelled = await platform.request('POST', `/api/jobs/${id}/cancel`, { key });

  expect(cancelled).toMatchObject({ status: 200, body: { status: 'cancelled' } });
});

embeddedTest('a wait outlives the process: each step has its effect once', async () => {
  const dataDir = dataDirectory();
  const { log, read } = effects();
  const environment = { EXECUTORS: '1', SKILLS_DIR: stagedSkills.at(-1) };
  const before = await startProcess(dataDir, environment);
  const key = await before.key();
  const id = await accepted(before, key, log, { step: 'a' }, { sleep: 1_500 }, { step: 'b' });
  await before.jobIn(key, id, 'waiting');

  before.signal('SIGKILL');
  await before.exit;
  const after = await startProcess(dataDir, environment);
  onTestFinished(() => after.stop());
  const ended = await after.jobIn(key, id, 'completed', 'failed');

  expect(ended.body).toMatchObject({ status: 'completed', attempt: 1 });
  expect(read()).toEqual(['a', 'b']);
});
