/** The slots of one process, shared among organizations. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const slots = 16;

let platform: Platform;
beforeEach(async () => {
  platform = await startStaged({ environment: { WORKER_CONCURRENCY: String(slots) } });
});
afterEach(() => platform.stop());

async function jobsIn(tenant: Tenant, status: string): Promise<number> {
  const { body } = await tenant.get(`/api/jobs?status=${status}&skill_name=play&limit=1`);
  return body.total;
}

/** Starts runs that each end when their gate is opened; the gates, in the order of the runs. */
async function holdRuns(tenant: Tenant, count: number) {
  const gates = Array.from({ length: count }, () => gate());
  for (const { path } of gates) await tenant.start(play, acting({ until: path }));
  return gates;
}

async function isRunning(tenant: Tenant, count: number): Promise<void> {
  await waitFor(async () => (await jobsIn(tenant, 'active')) === count, {
    describe: `${count} runs`,
  });
}

test('an organization that is alone has all slots; another one begins at once beside it', async () => {
  const [busy, other] = [await newTenant(platform), await newTenant(platform)];
  await holdRuns(busy, 40);
  await isRunning(busy, slots);

  const echo = await other.run('util/v1.0/echo', { text: 'at once' });
  const family = await other.run('staged/v1.0/family', {
    jobs: [{ skill: 'util/v1.0/echo', input: { text: 'child' } }],
  });
  const calling = await other.run(play, acting({ call: ['util/v1.0/echo', { text: 'called' }] }));

  expect([echo, family, calling].map(({ body }) => body.status)).toEqual([
    'completed',
    'completed',
    'completed',
  ]);
  expect(await jobsIn(busy, 'active')).toBe(slots);
});

test('organizations share the slots while both have work, and a third one finds a free slot', async () => {
  const [first, second] = [await newTenant(platform), await newTenant(platform)];
  const gates = await holdRuns(first, 40);
  await holdRuns(second, 40);
  await isRunning(first, slots);
  await isRunning(second, 1);

  for (const { open } of gates.slice(0, slots)) open();

  await waitFor(async () => (await jobsIn(first, 'completed')) === slots, {
    describe: 'the first runs have ended',
  });
  await waitFor(
    async () => {
      const both = [await jobsIn(first, 'active'), await jobsIn(second, 'active')];
      return both.every((running) => running >= 5 && running <= 6);
    },
    { describe: 'each has a third of the slots' },
  );
  const third = await newTenant(platform);
  const ids: string[] = [];
  for (let i = 0; i < 2; i++) ids.push(await third.start(play, acting({ until: gate().path })));
  for (const id of ids) expect((await third.jobIn(id, 'active')).body.status).toBe('active');
});

test('an organization has all slots again once no other one waits', async () => {
  const [first, second] = [await newTenant(platform), await newTenant(platform)];
  const gates = await holdRuns(first, 40);
  const others = await holdRuns(second, 20);

  for (const { open } of others) open();
  for (const { open } of gates.slice(0, slots)) open();

  await waitFor(async () => (await jobsIn(second, 'completed')) === 20, {
    describe: 'the work of the second one has ended',
  });
  await isRunning(first, slots);
});
