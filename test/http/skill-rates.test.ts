/** Rates of skills, as clients and the world outside see them: the moments at which runs begin are recorded in a file. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callingTools } from '../support/scripted-provider.ts';
import { dataDirectory, stagedSkills } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { newThinker, startThinkers, type Thinkers, thinkersSkills } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

const limited = join(import.meta.dirname, '../fixtures/skills/limited');
/** Four in 5 seconds, of all organizations together. */
const paced = 'limited/v1.0/paced';
/** One in 2 seconds, of each organization. */
const pacedForEach = 'limited/v1.0/paced-for-each';
const unpaced = 'limited/v1.0/unpaced';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers({
    skillsDirs: [...new Set([...thinkersSkills, ...stagedSkills]), limited],
    environment: { WORKER_CONCURRENCY: '8' },
  });
});
afterAll(() => world.stop());

/** A file in which runs record when they begin, the earliest first. */
function beginnings() {
  const log = join(dataDirectory(), 'beginnings');
  const read = () =>
    existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').map(Number).toSorted() : [];
  return { log, read };
}

/** The most beginnings in any window. */
const most = (moments: readonly number[], ms: number) =>
  Math.max(...moments.map((at) => moments.filter((one) => one >= at && one < at + ms).length));

const ended = async (tenant: Tenant, ids: readonly string[]) => {
  const jobs = await Promise.all(ids.map((id) => tenant.jobIn(id, 'completed', 'failed')));
  return jobs.map(({ body }) => body.status as string);
};

test('jobs of all organizations together, single ones and those of a batch, never start above the rate, wait and all end', async () => {
  const [first, second] = [await newTenant(world.platform), await newTenant(world.platform)];
  const { log, read } = beginnings();
  const items = Array.from({ length: 5 }, () => ({ skill: paced, input: { log } }));

  const { body: batch } = await first.post('/api/batches', { items });
  const own = await Promise.all(Array.from({ length: 3 }, () => second.start(paced, { log })));
  const ofBatch: string[] = batch.items.map(({ job_id }: { job_id: string }) => job_id);
  const { body: last } = await second.get(`/api/jobs/${own[2]}`);

  expect(last).toMatchObject({ status: 'queued', waiting_for: `rate of ${paced}` });
  expect(await ended(first, ofBatch)).toEqual(Array(5).fill('completed'));
  expect(await ended(second, own)).toEqual(Array(3).fill('completed'));
  expect([read().length, most(read(), 5_000)]).toEqual([8, 4]);
});

test('a skill is read with the limits that it has', async () => {
  const tenant = await newTenant(world.platform);
  const read = async (skill: string) => {
    const { body } = await tenant.get(`/api/skills/${skill}`);
    return [body.concurrency, body.rate, body.slows_down];
  };

  expect(await read(pacedForEach)).toEqual([
    undefined,
    [{ limit: 1, per_seconds: 2, per: 'organization' }],
    undefined,
  ]);
  expect(await read('limited/v1.0/by-client')).toEqual([
    [{ limit: 1, per: 'client-key' }],
    undefined,
    undefined,
  ]);
  expect(await read(unpaced)).toEqual([undefined, undefined, undefined]);
  const slows = 'limited/v1.0/slows-down';
  expect(await read(slows)).toEqual([undefined, undefined, true]);
});

test('skills that code calls wait instead of failing, a call of the own skill too', async () => {
  const tenant = await newTenant(world.platform);
  const { log, read } = beginnings();
  const own = { log, calls: [[pacedForEach, { log }]] };
  const calls = [[pacedForEach, own]];

  const { body } = await tenant.run(unpaced, { log, calls });

  expect(body).toMatchObject({ status: 'completed', error: null });
  // The run that calls its own skill has started before.
  expect(read()).toHaveLength(1);
  const took = Date.parse(body.finished_at) - Date.parse(body.started_at);
  expect(took).toBeGreaterThanOrEqual(2_000);
});

test('tools that a model calls wait for their starts, and the run ends', async () => {
  const thinker = await newThinker(world.platform, { skills: ['limited/*'] });
  const { log, read } = beginnings();
  const call = { name: 'limited__paced-for-each__v1_0', input: { log } };
  world.provider.script(callingTools([call, call], 'Both were called.'));

  const job = await thinker.task('Call it twice');

  expect(job).toMatchObject({ status: 'completed', output: { answer: 'Both were called.' } });
  expect([read().length, most(read(), 2_000)]).toEqual([2, 1]);
});

test.each([
  ['that code calls', 'slows-down'],
  ['that a model calls as a tool', 'slows-down-too'],
])('a skill %s, and that a service refuses, slows down', async (by, name) => {
  const thinker = await newThinker(world.platform, { skills: ['limited/*'] });
  const { log } = beginnings();
  const slows = `limited/v1.0/${name}`;
  const input = { log, refusedMs: 600_000 };
  if (by === 'that code calls') {
    await thinker.start(unpaced, { log, calls: [[slows, input]] });
  } else {
    const call = { name: `limited__${name}__v1_0`, input };
    world.provider.script(callingTools([call], 'It was refused.'));
    await thinker.task('Call it');
  }

  const waiting = await waitFor(
    async () => {
      const id = await thinker.start(slows, { log });
      const { body } = await thinker.get(`/api/jobs/${id}`);
      return body.waiting_for as string | null;
    },
    { describe: 'a further run waits' },
  );

  const [words, until] = waiting.split(' until ');
  expect(words).toBe(`pause after a refusal of ${slows}`);
  expect(Date.parse(until ?? '')).toBeGreaterThan(Date.now() + 500_000);
});

test('a run that goes on after a wait does not count again', async () => {
  const tenant = await newTenant(world.platform);
  const { log, read } = beginnings();

  const ids = [
    await tenant.start(pacedForEach, { log, napMs: 500 }),
    await tenant.start(pacedForEach, { log, napMs: 500 }),
  ];

  expect(await ended(tenant, ids)).toEqual(['completed', 'completed']);
  const { body } = await tenant.get(`/api/jobs/${ids[0]}`);
  expect([read().length, most(read(), 2_000)]).toEqual([2, 1]);
  // It would have waited for the start of the second one.
  expect(Date.parse(body.finished_at)).toBeLessThan((read()[1] ?? 0) + 2_000);
});
