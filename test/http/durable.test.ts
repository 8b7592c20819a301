/** Runs that wait, as a client sees them: each step has its effect once, and a wait outlives the process. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { ErrandAct } from '../fixtures/skills/staged/errand.ts';
import { embeddedTest, type Platform } from '../support/platform.ts';
import { startProcess } from '../support/process.ts';
import { dataDirectory, stagedSkills, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { resumeUnloaded } from '../support/unloaded.ts';

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

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

async function newErrands() {
  const tenant: Tenant = await newTenant(platform);
  const { log, read } = effects();
  const start = (...acts: ErrandAct[]) => tenant.start(errand, { log, acts });
  return { tenant, log, read, start };
}

test('a run steps, waits without an attempt, and completes', async () => {
  const { tenant, read, start } = await newErrands();

  const id = await start({ step: 'a' }, { wait: true }, { step: 'b' }, { sleep: 50 });
  const waiting = await tenant.jobIn(id, 'waiting');
  expect(waiting.body).toMatchObject({ status: 'waiting', attempt: 1 });
  await resumeUnloaded(tenant, id);
  const ended = await tenant.jobIn(id, 'completed', 'failed');

  expect(ended.body).toMatchObject({
    status: 'completed',
    attempt: 1,
    output: { results: ['a', { event: 'go' }, 'b', null], attempt: 1 },
  });
  expect(read()).toEqual(['a', 'b']);
  const steps = await tenant.get(`/api/jobs/${id}/steps`);
  expect(steps.body.data).toMatchObject([
    { step: 1, kind: 'step', name: 'a', status: 'completed' },
    { step: 2, kind: 'event', name: 'go', status: 'completed' },
    { step: 3, kind: 'step', name: 'b', status: 'completed' },
    { step: 4, kind: 'sleep', name: 'nap', status: 'completed' },
  ]);
});

test('several waits in a row, in a called skill too, run each step once', async () => {
  const { tenant, log, read, start } = await newErrands();
  const wait = { wait: true };
  const inner = { log, acts: [{ step: 'in' }, wait, { step: 'in' }] };

  const id = await start(
    wait,
    { step: 'a' },
    { call: { skill: errand, input: inner } },
    wait,
    { steps: 5 },
    wait,
  );
  await resumeUnloaded(tenant, id, 4);
  const ended = await tenant.jobIn(id, 'completed', 'failed');

  expect(ended.body).toMatchObject({ status: 'completed', attempt: 1 });
  const many = [0, 1, 2, 3, 4].map((i) => `many ${i}`);
  expect(read().sort()).toEqual(['a', 'in', 'in', ...many].sort());
});

test('code around a wait does not notice that the run is unloaded', async () => {
  const { tenant, read, start } = await newErrands();

  const id = await start({ guardedWait: true }, { step: 'a' });
  await resumeUnloaded(tenant, id);
  const ended = await tenant.jobIn(id, 'completed', 'failed');

  expect(ended.body).toMatchObject({ status: 'completed' });
  expect(read()).toEqual(['finally', 'a']);
});

test('a run may end before a wait that it does not need', async () => {
  const { tenant, read, start } = await newErrands();

  const id = await start({ race: 3_600_000 });
  const ended = await tenant.jobIn(id, 'completed', 'failed');

  expect(ended.body).toMatchObject({ status: 'completed', output: { results: ['fast'] } });
  expect(read()).toEqual(['fast']);
});

test('a waiting run is cancelled at once', async () => {
  const { tenant, start } = await newErrands();
  const id = await start({ sleep: 3_600_000 });
  await tenant.jobIn(id, 'waiting');

  const cancelled = await tenant.post(`/api/jobs/${id}/cancel`);

  expect(cancelled).toMatchObject({ status: 200, body: { status: 'cancelled' } });
});

embeddedTest('a wait outlives the process: each step has its effect once', async () => {
  const dataDir = dataDirectory();
  const { log, read } = effects();
  const environment = { EXECUTORS: '1', SKILLS_DIR: stagedSkills.at(-1) };
  const before = await startProcess(dataDir, environment);
  const key = await before.key();
  const id = await accepted(before, key, log, { step: 'a' }, { sleep: 4_000 }, { step: 'b' });
  await before.jobIn(key, id, 'waiting');

  before.signal('SIGKILL');
  await before.exit;
  const after = await startProcess(dataDir, environment);
  onTestFinished(() => after.stop());
  const ended = await after.jobIn(key, id, 'completed', 'failed');

  expect(ended.body).toMatchObject({ status: 'completed', attempt: 1 });
  expect(read()).toEqual(['a', 'b']);
});
