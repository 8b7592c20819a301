/** The skills to copy in examples/skills/durable, on a whole platform, with waits of seconds. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Platform, startPlatform } from '../support/platform.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
let tenant: Tenant;
beforeAll(async () => {
  platform = await startPlatform({
    environment: { SKILLS_DIR: join(import.meta.dirname, '../../examples/skills') },
  });
});
afterAll(() => platform?.stop());

/** Starts an order, and pays it early: the event is kept until the order waits for it. */
async function paidOrder(id: string): Promise<{ job: string; approval: string }> {
  const input = { id, total: 40, parcels: ['lamp', 'shade', 'bulb'], cooling_off: '1s' };
  const job = await tenant.start('durable/v1.0/order', input);
  const paid = await tenant.post('/api/events', {
    event: 'order.paid',
    key: id,
    data: { amount: 40 },
  });
  expect(paid.status).toBe(202);
  const approval = await waitFor(
    async () => (await tenant.get(`/api/approvals?job_id=${job}&status=pending`)).body.data[0],
    { describe: 'the order asks for approval' },
  );
  expect(approval).toMatchObject({
    step: 'ship',
    title: `Ship order ${id} for 40 EUR?`,
    details: { order: id, payment: { amount: 40 } },
  });
  return { job, approval: approval.approval_id };
}

test('an order waits, is paid, approved, labelled and shipped', async () => {
  tenant = await newTenant(platform);
  const { job, approval } = await paidOrder('A-17');

  await tenant.post(`/api/approvals/${approval}/approve`, {});

  const { body } = await tenant.jobIn(job, 'completed', 'failed');
  expect(body.error).toBeNull();
  expect(body).toMatchObject({
    attempt: 1,
    output: {
      state: 'shipped',
      labels: [/^lamp-/, /^shade-/, /^bulb-/].map((label) => expect.stringMatching(label)),
      letter: 'Order A-17 is on its way in 3 parcels.',
      shipped_at: expect.stringMatching(/Z$/),
    },
  });
  const children = await tenant.get(`/api/jobs?parent_job_id=${job}`);
  expect(children.body.data).toMatchObject([{ skill_name: 'render-template' }]);
});

test('an order that a person refuses is released, with the reason', async () => {
  tenant = await newTenant(platform);
  const { job, approval } = await paidOrder('A-18');

  await tenant.post(`/api/approvals/${approval}/reject`, { reason: 'The address is wrong.' });

  const { body } = await tenant.jobIn(job, 'completed', 'failed');
  expect(body.output).toEqual({ state: 'refused', reason: 'The address is wrong.' });
});

test('an order that is not paid expires', async () => {
  tenant = await newTenant(platform);
  const input = { id: 'A-19', total: 4, parcels: ['lamp'], cooling_off: '1s', payable_for: '1s' };

  const { body } = await tenant.run('durable/v1.0/order', input);

  expect(body).toMatchObject({ status: 'completed', output: { state: 'expired' } });
});

test('a nightly digest has what was remembered since the night before', async () => {
  tenant = await newTenant(platform);
  const night = { nights: 2, hours_between: 3 / 3600 };
  const job = await tenant.start('durable/v1.0/nightly-digest', night);
  await tenant.jobIn(job, 'waiting');
  const remember = (content: string) => tenant.post('/api/agents/default/memories', { content });
  await remember('The ship Ada has moored.');
  await waitFor(
    async () => {
      const { body } = await tenant.get(`/api/jobs/${job}/steps`);
      return body.data.some(({ name }: { name: string }) => name === 'collect');
    },
    { describe: 'the first night is over' },
  );
  await remember('The ship Grace has left.');

  const { body } = await tenant.jobIn(job, 'completed', 'failed');

  expect(body.error).toBeNull();
  expect(body.output.digests).toMatchObject([
    { news: ['The ship Ada has moored.'] },
    { news: ['The ship Grace has left.'] },
  ]);
});

test('a fan-out of 200 executes each item once', async () => {
  tenant = await newTenant(platform);
  const addresses = Array.from({ length: 200 }, (_, i) =>
    i === 117 ? 'nonsense' : `guest-${i}@example.com`,
  );
  const job = await tenant.start('durable/v1.0/fan-out', { addresses });

  const { body } = await tenant.jobIn(job, 'completed', 'failed');

  expect(body.output).toEqual({ invited: 199, refused: ['"nonsense" is not an address'] });
  const steps = await tenant.get(`/api/jobs/${job}/steps?limit=1`);
  expect(steps.body.total).toBe(200);
});
