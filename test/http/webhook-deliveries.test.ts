import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventTypes, organizationEvents } from '../../src/core/events/events.ts';
import { anId, aTimestamp } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Platform } from '../support/platform.ts';
import { acting, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { receiverAuthority, startTlsReceiver, type TlsReceiver } from '../support/tls-receiver.ts';
import {
  deliveriesOf,
  deliveryIn,
  expectSigned,
  happen,
  newWebhook,
  webhookNow,
} from '../support/webhooks.ts';

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({
    clock,
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

describe('a delivery', () => {
  test('is a POST of the event as JSON, with the headers of the specification', async () => {
    const webhook = await newWebhook(tenant, `${receiver.origin}/hook/%C3%BC?tenant=7&a=`);
    clock.advance(1_000);
    await happen(tenant);

    const [request] = await receiver.received(1);
    const delivery = await deliveryIn(tenant, webhook, 'delivered');

    expect(request).toMatchObject({ method: 'POST', path: '/hook/%C3%BC?tenant=7&a=' });
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(request?.body.length),
      'x-service-event': 'agent.status_changed',
      'x-service-delivery': delivery.id,
      'x-service-signature': expect.stringMatching(/^[0-9a-f]{64}$/),
      'webhook-id': delivery.id,
      'webhook-timestamp': String(Math.floor(clock.now() / 1000)),
      'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
    });
    expect(request?.json).toEqual({
      id: anId,
      event: 'agent.status_changed',
      timestamp: new Date(clock.now()).toISOString(),
      agent_id: 'default',
      data: { previous_status: 'active', status: 'paused' },
    });
    expect(request?.json.id).not.toBe(delivery.id);
    if (request !== undefined) expectSigned(request, webhook.secret);
  });

  test('is delivered where the receiver sends interim responses before its answer', async () => {
    const interim = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
    const answer = 'HTTP/1.1 202 Accepted\r\ncontent-length: 5\r\n\r\ntaken';
    receiver.answers({ does: 'write', bytes: `${interim}${answer}` });
    const webhook = await newWebhook(tenant, receiver.origin);

    await happen(tenant);

    const { attempts } = await deliveryIn(tenant, webhook, 'delivered');
    expect(attempts).toMatchObject([{ attempt: 1, status: 202, response: 'taken', error: null }]);
  });

  test('has no credentials, no cookie, and accepts no encoding', async () => {
    await newWebhook(tenant, receiver.origin);
    await happen(tenant);

    const [request] = await receiver.received(1);

    for (const name of ['authorization', 'cookie', 'x-api-key', 'accept-encoding', 'expect']) {
      expect(request?.headers).not.toHaveProperty(name);
    }
    expect(JSON.stringify(request?.rawHeaders)).not.toContain(tenant.key);
  });

  test.each([
    'größer als 16 Zeichen 🔑',
    'short but enough',
    'a"b\\c\r\nd\te and still more',
    `whsec_${Buffer.from('a key of thirty-two bytes, say it').toString('base64')}`,
  ])('is signed with the secret that was given (%j), whatever it is about', async (secret) => {
    const events = ['skill.completed'];
    await newWebhook(tenant, receiver.origin, { secret, events });
    const text = 'grüße 🏔️ 日本 \u2028 </script> \\/ "\\u0041" \u0007';

    await tenant.run(echo, { text });
    const [request] = await receiver.received(1);

    expect(request?.json.data.result_summary).toContain('grüße 🏔️ 日本');
    if (request !== undefined) expectSigned(request, secret);
  });

  test('is sent with the secret and to the url that the webhook has at that attempt', async () => {
    const other = await startTlsReceiver();
    receiver.answers({ status: 500 });
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);
    const [before] = await receiver.received(1);
    await deliveryIn(tenant, webhook, 'pending');
    const secret = 'the secret after the rotation';
    await tenant.put(`/api/agent-webhooks/${webhook.id}`, { secret, url: `${other.origin}/new` });

    clock.advance(30_000);
    const [after] = await other.received(1);

    if (before === undefined || after === undefined) throw new Error('unreachable');
    expectSigned(before, webhook.secret);
    expectSigned(after, secret);
    expect(after.path).toBe('/new');
    expect(after.body.equals(before.body)).toBe(true);
    expect(after.headers['x-service-delivery']).toBe(before.headers['x-service-delivery']);
    await other.close();
  });

  test('has the same values as in the list', async () => {
    receiver.answers({ status: 201, body: 'taken, thank you' });
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);

    const delivery = await deliveryIn(tenant, webhook, 'delivered');

    const now = new Date(clock.now()).toISOString();
    expect(delivery).toEqual({
      id: anId,
      event_id: receiver.requests[0]?.json.id,
      event: 'agent.status_changed',
      status: 'delivered',
      attempts: [
        {
          attempt: 1,
          started_at: now,
          duration_ms: expect.any(Number),
          status: 201,
          error: null,
          response: 'taken, thank you',
        },
      ],
      next_attempt_at: null,
      created_at: aTimestamp,
      finished_at: now,
      test: false,
      redelivery_of: null,
    });
    expect(await webhookNow(tenant, webhook)).toMatchObject({
      failing: false,
      consecutive_failures: 0,
      last_delivery_at: now,
    });
  });
});

describe('the data of an event', () => {
  /** The data of the one delivery that this leads to. */
  async function dataOf(event: string, what: () => Promise<unknown>) {
    await newWebhook(tenant, receiver.origin, { events: [event] });
    await what();
    const [request] = await receiver.received(1);
    expect(request?.json).toMatchObject({ event, agent_id: 'default' });
    return request?.json.data;
  }

  test('skill.completed names the job, the skill, the conversation, and sums up', async () => {
    let job: Record<string, unknown> = {};
    const data = await dataOf('skill.completed', async () => {
      job = (await tenant.run(echo, { text: 'hello' })).body;
    });

    expect(data).toEqual({
      job_id: job['job_id'],
      skill_category: 'util',
      skill_name: 'echo',
      skill_version: 'v1.0',
      conversation_id: job['conversation_id'],
      duration_ms: expect.any(Number),
      result_summary: expect.stringContaining('hello'),
    });
  });

  test('skill.failed comes once, after the last attempt, with the error', async () => {
    let job: Record<string, unknown> = {};
    const data = await dataOf('skill.failed', async () => {
      const fail = { message: 'it is Monday', retryable: false };
      job = (await tenant.run(play, acting({ fail }))).body;
    });

    expect(data).toEqual({
      job_id: job['job_id'],
      skill_category: 'staged',
      skill_name: 'play',
      skill_version: 'v1.0',
      conversation_id: job['conversation_id'],
      attempts: 1,
      error: { code: 'skill_execution_failed', message: expect.stringContaining('Monday') },
    });
  });

  test('agent.error reports missing credentials', async () => {
    const data = await dataOf('agent.error', () =>
      tenant.run(
        play,
        acting({ fail: { message: 'no key', code: 'missing_credentials', retryable: false } }),
      ),
    );

    expect(data).toEqual({
      code: 'missing_credentials',
      message: expect.stringContaining('no key'),
      job_id: anId,
    });
  });

  test('conversation.created has its trigger type and user', async () => {
    const data = await dataOf('conversation.created', () => tenant.run(echo, { text: 'x' }));

    expect(data).toEqual({ conversation_id: anId, trigger_type: 'api', user_id: 'a test' });
  });

  test('agent.status_changed has the previous and the new status', async () => {
    const data = await dataOf('agent.status_changed', () => happen(tenant));

    expect(data).toEqual({ previous_status: 'active', status: 'paused' });
  });
});

/** Those that a webhook of one agent may have. */
const agentEvents = eventTypes.filter((type) => !organizationEvents.has(type));

describe('who gets an event', () => {
  /** Waits until the witness, made last, has heard: then what else was due has been sent too. */
  async function witnessed(what: () => Promise<unknown>): Promise<void> {
    const witness = await startTlsReceiver();
    const webhook = await newWebhook(tenant, witness.origin, { events: agentEvents });
    await what();
    await happen(tenant);
    const isLast = (one: { event: string }) => one.event === 'agent.status_changed';
    await witness.receivedWhere(({ json }) => isLast(json));
    await deliveryIn(tenant, webhook, 'delivered');
    await witness.close();
  }

  test('each webhook that is subscribed to it, once', async () => {
    const webhooks = await Promise.all(
      Array.from({ length: 5 }, () => newWebhook(tenant, receiver.origin)),
    );

    await happen(tenant);
    const requests = await receiver.received(5);

    const deliveries = await Promise.all(
      webhooks.map((one) => deliveryIn(tenant, one, 'delivered')),
    );
    expect(new Set(requests.map(({ json }) => json.id)).size).toBe(1);
    expect(requests.map(({ headers }) => headers['x-service-delivery']).toSorted()).toEqual(
      deliveries.map(({ id }) => id).toSorted(),
    );
  });

  test('no webhook that is not subscribed to it', async () => {
    await newWebhook(tenant, receiver.origin, { events: ['skill.failed'] });

    await witnessed(() => tenant.run(echo, { text: 'x' }));

    expect(receiver.requests).toEqual([]);
  });

  test('no webhook of another agent or organization', async () => {
    await tenant.post('/api/agents', { id: 'other' });
    await newWebhook(tenant, receiver.origin, { agent_id: 'other', events: agentEvents });
    await newWebhook(await newTenant(platform), receiver.origin, { events: agentEvents });

    await witnessed(() => tenant.run(echo, { text: 'x' }));

    expect(receiver.requests).toEqual([]);
  });

  test('no webhook that is inactive, or was when it happened', async () => {
    const { id } = await newWebhook(tenant, receiver.origin);
    await tenant.put(`/api/agent-webhooks/${id}`, { active: false });

    await witnessed(() => happen(tenant));
    await tenant.put(`/api/agent-webhooks/${id}`, { active: true });
    await witnessed(async () => {});

    expect(await deliveriesOf(tenant, { id })).toHaveLength(1);
    expect(receiver.requests).toHaveLength(1);
  });

  test('no webhook that is deleted', async () => {
    const { id } = await newWebhook(tenant, receiver.origin);
    await tenant.delete(`/api/agent-webhooks/${id}`);

    await witnessed(() => happen(tenant));

    expect(receiver.requests).toEqual([]);
  });

  test('no webhook that came into being later', async () => {
    await happen(tenant);
    const webhook = await newWebhook(tenant, receiver.origin);

    await witnessed(async () => {});

    expect(await deliveriesOf(tenant, webhook)).toHaveLength(1);
  });

  test('as many as there are events, each once', async () => {
    await newWebhook(tenant, receiver.origin, { events: ['conversation.created'] });
    const runs = await Promise.all(
      Array.from({ length: 60 }, (_, i) => tenant.run(echo, { text: `${i}` })),
    );

    const requests = await receiver.received(60);
    await witnessed(async () => {});

    expect(requests.map(({ json }) => json.data.conversation_id).toSorted()).toEqual(
      runs.map(({ body }) => body.conversation_id).toSorted(),
    );
    expect(receiver.requests).toHaveLength(60);
  });
});

describe('GET /api/agent-webhooks/:webhookId/deliveries', () => {
  test('is paged, newest first', async () => {
    const webhook = await newWebhook(tenant, receiver.origin);
    for (let i = 1; i <= 5; i += 1) {
      await happen(tenant);
      await receiver.received(i);
    }
    const page = async (query: string) => {
      const { body } = await tenant.get(`/api/agent-webhooks/${webhook.id}/deliveries${query}`);
      const { data, ...rest } = body;
      return [...data.map((one: { event_id: string }) => one.event_id), rest];
    };
    const [e1, e2, e3, e4, e5] = receiver.requests.map(({ json }) => json.id);

    expect(await page('')).toEqual([e5, e4, e3, e2, e1, { total: 5, limit: 50, offset: 0 }]);
    expect(await page('?limit=2&offset=1')).toEqual([e4, e3, { total: 5, limit: 2, offset: 1 }]);
    expect(await page('?limit=200&offset=5')).toEqual([{ total: 5, limit: 200, offset: 5 }]);
  });

  test('shows the first KiB of an answer, as text that can be kept', async () => {
    receiver.answers({
      status: 200,
      body: Buffer.concat([Buffer.from([0, 0xff, 0xc3]), Buffer.alloc(5_000, 'ü')]),
    });
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);

    const { attempts } = await deliveryIn(tenant, webhook, 'delivered');

    expect(attempts[0].response).toContain('üüü');
    expect(attempts[0].response.isWellFormed()).toBe(true);
    expect(attempts[0].response).not.toContain('\0');
    expect(attempts[0].response.length).toBeLessThanOrEqual(1024);
  });
});

describe('GET …/deliveries/:deliveryId', () => {
  test('is the delivery as listed, with the body as it was sent', async () => {
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);
    const [request] = await receiver.received(1);
    const listed = await deliveryIn(tenant, webhook, 'delivered');

    const { status, body } = await tenant.get(
      `/api/agent-webhooks/${webhook.id}/deliveries/${listed.id}`,
    );

    expect(status).toBe(200);
    expect(body).toEqual({ ...listed, body: request?.body.toString() });
    expect(listed).not.toHaveProperty('body');
  });

  test('is 404 under another webhook', async () => {
    const webhook = await newWebhook(tenant, receiver.origin);
    const other = await newWebhook(tenant, receiver.origin);
    await happen(tenant);
    const { id } = await deliveryIn(tenant, webhook, 'delivered');

    const { status, body } = await tenant.get(`/api/agent-webhooks/${other.id}/deliveries/${id}`);

    expect(status).toBe(404);
    expect(body.error).toBe('not_found');
  });
});

describe('POST …/deliveries/:deliveryId/redeliver', () => {
  test('is 202 and a new delivery of the same event, with the same bytes and its own id', async () => {
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);
    const first = await deliveryIn(tenant, webhook, 'delivered');
    const path = `/api/agent-webhooks/${webhook.id}/deliveries/${first.id}/redeliver`;

    const { status, body } = await tenant.post(path);
    const [before, after] = await receiver.received(2);
    const second = await deliveryIn(tenant, webhook, 'delivered');

    expect(status).toBe(202);
    expect(body).toEqual({
      ...first,
      id: second.id,
      status: 'pending',
      attempts: [],
      next_attempt_at: aTimestamp,
      created_at: aTimestamp,
      finished_at: null,
      redelivery_of: first.id,
    });
    expect(second.id).not.toBe(first.id);
    expect(after?.body.equals(before?.body ?? Buffer.alloc(0))).toBe(true);
    expect(after?.headers['x-service-delivery']).toBe(second.id);
    expect(await deliveriesOf(tenant, webhook)).toHaveLength(2);
  });

  test('has its own retries', async () => {
    receiver.answers({ status: 410 });
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);
    const first = await deliveryIn(tenant, webhook, 'failed');
    receiver.answers({ status: 503 });

    await tenant.post(`/api/agent-webhooks/${webhook.id}/deliveries/${first.id}/redeliver`);
    await receiver.received(2);
    await deliveryIn(tenant, webhook, 'pending');
    clock.advance(30_000);
    const requests = await receiver.received(3);

    const [, second, third] = requests.map(({ headers }) => headers['x-service-delivery']);
    expect(second).toBe(third);
  });
});

describe('POST /api/agent-webhooks/:webhookId/test', () => {
  test.each(eventTypes)('sends a sample of %s when that is subscribed to first', async (event) => {
    const events = [event, ...agentEvents.filter((one) => one !== event).slice(0, 2)];
    const agent_id = organizationEvents.has(event) ? '*' : 'default';
    const webhook = await newWebhook(tenant, receiver.origin, { events, agent_id });

    const { status, body } = await tenant.post(`/api/agent-webhooks/${webhook.id}/test`);
    const [request] = await receiver.received(1);

    expect(status).toBe(202);
    expect(body).toEqual({
      id: anId,
      event_id: request?.json.id,
      event,
      status: 'pending',
      attempts: [],
      next_attempt_at: aTimestamp,
      created_at: aTimestamp,
      finished_at: null,
      test: true,
      redelivery_of: null,
    });
    expect(request?.headers['x-service-delivery']).toBe(body.id);
    expect(request?.json).toMatchObject({ event, agent_id: 'default', data: { test: true } });
    expect(Object.keys(request?.json.data).length).toBeGreaterThan(1);
    if (request !== undefined) expectSigned(request, webhook.secret);
  });

  test('does not count as a failure, after any number of failures', async () => {
    receiver.answers({ status: 410 });
    const webhook = await newWebhook(tenant, receiver.origin);

    for (let i = 1; i <= 12; i += 1) {
      await tenant.post(`/api/agent-webhooks/${webhook.id}/test`);
      await receiver.received(i);
      await deliveryIn(tenant, webhook, 'failed');
    }

    expect(await webhookNow(tenant, webhook)).toMatchObject({
      active: true,
      failing: false,
      consecutive_failures: 0,
    });
  });
});
