import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { acting, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { receiverAuthority, startTlsReceiver, type TlsReceiver } from '../support/tls-receiver.ts';
import { deliveriesOf, deliveryIn, newWebhook } from '../support/webhooks.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({
    environment: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' },
    parts: { webhookEgress: { ca: receiverAuthority } },
  });
});
afterAll(() => platform.stop());

let receiver: TlsReceiver;
let tenant: Tenant;
beforeEach(async () => {
  receiver = await startTlsReceiver();
  tenant = await newTenant(platform);
});
afterEach(() => receiver.close());

const echo = 'util/v1.0/echo';
const pathOf = (jobId: string) => `/api/jobs/${jobId}/deliveries`;

describe('GET /api/jobs/:jobId/deliveries', () => {
  test('lists the deliveries of the job, newest first, each with its webhook and url', async () => {
    const events = ['conversation.created'];
    const opened = await newWebhook(tenant, `${receiver.origin}/opened`, { events });
    const done = await newWebhook(tenant, `${receiver.origin}/done`, {
      events: ['skill.completed', 'skill.failed'],
    });
    const { body: job } = await tenant.run(echo, { text: 'x' });
    await tenant.run(echo, { text: 'another' });
    await receiver.received(4);
    await deliveryIn(tenant, opened, 'delivered');
    await deliveryIn(tenant, done, 'delivered');

    const { status, body } = await tenant.get(pathOf(job.job_id));

    const [, completed] = await deliveriesOf(tenant, done);
    const [, created] = await deliveriesOf(tenant, opened);
    const expected = [
      { ...completed, webhook_id: done.id, url: done.url },
      { ...created, webhook_id: opened.id, url: opened.url },
    ].toSorted((a, b) => (a.id < b.id ? 1 : -1));
    expect(status).toBe(200);
    expect(body).toEqual({ data: expected, total: 2, limit: 50, offset: 0 });
    const sent = receiver.requests.filter(({ json }) =>
      [json.data.job_id, json.data.conversation_id].some((id) =>
        [job.job_id, job.conversation_id].includes(id),
      ),
    );
    expect(sent.map(({ json }) => json.id).toSorted()).toEqual(
      expected.map(({ event_id }) => event_id).toSorted(),
    );
  });

  test('comes in pages', async () => {
    const events = ['conversation.created', 'skill.completed'];
    const webhook = await newWebhook(tenant, receiver.origin, { events });
    const { body: job } = await tenant.run(echo, { text: 'x' });
    await receiver.received(2);
    await deliveryIn(tenant, webhook, 'delivered');

    const { body } = await tenant.get(`${pathOf(job.job_id)}?limit=1&offset=1`);

    const [, older] = await deliveriesOf(tenant, webhook);
    expect(body).toMatchObject({ total: 2, limit: 1, offset: 1, data: [{ id: older.id }] });
    expect((await tenant.get(`${pathOf(job.job_id)}?offset=2`)).body.data).toEqual([]);
  });

  test('has one that was delivered again twice, and no sample', async () => {
    const webhook = await newWebhook(tenant, receiver.origin, { events: ['skill.failed'] });
    const failing = acting({ fail: { message: 'no', retryable: false } });
    const { body: job } = await tenant.run(play, failing);
    const first = await deliveryIn(tenant, webhook, 'delivered');
    const again = await tenant.post(
      `/api/agent-webhooks/${webhook.id}/deliveries/${first.id}/redeliver`,
    );
    await tenant.post(`/api/agent-webhooks/${webhook.id}/test`);
    await receiver.received(3);

    const { body } = await tenant.get(pathOf(job.job_id));

    expect(body.total).toBe(2);
    expect(body.data).toMatchObject([
      { id: again.body.id, redelivery_of: first.id },
      { id: first.id, redelivery_of: null },
    ]);
  });

  test('is empty without a webhook, and has none of a deleted webhook', async () => {
    const { body: unheard } = await tenant.run(echo, { text: 'x' });
    const webhook = await newWebhook(tenant, receiver.origin, { events: ['skill.completed'] });
    const { body: heard } = await tenant.run(echo, { text: 'x' });
    await deliveryIn(tenant, webhook, 'delivered');
    expect((await tenant.get(pathOf(heard.job_id))).body.total).toBe(1);

    await tenant.delete(`/api/agent-webhooks/${webhook.id}`);

    for (const { job_id } of [unheard, heard]) {
      const { body } = await tenant.get(pathOf(job_id));
      expect(body).toEqual({ data: [], total: 0, limit: 50, offset: 0 });
    }
  });

  test("another organization's job is 404 like one that does not exist", async () => {
    const webhook = await newWebhook(tenant, receiver.origin, { events: ['skill.completed'] });
    const { body: job } = await tenant.run(echo, { text: 'x' });
    await deliveryIn(tenant, webhook, 'delivered');
    const stranger = await newTenant(platform);

    const theirs = await stranger.get(pathOf(job.job_id));

    expectRefusal(theirs, 404, 'not_found');
    for (const id of ['0198c0de-0000-7000-8000-000000000000', 'x']) {
      expect((await tenant.get(`${pathOf(id)}?limit=x`)).text).toBe(theirs.text);
    }
    expectInvalid(await tenant.get(`${pathOf(job.job_id)}?limit=0`), 'limit');
  });
});
