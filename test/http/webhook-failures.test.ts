import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { manualClock } from '../support/manual-clock.ts';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import {
  receiverAuthority,
  type Script,
  startTlsReceiver,
  type TlsReceiver,
} from '../support/tls-receiver.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  deliveriesOf,
  deliveryIn,
  deliveryOnce,
  happen,
  newWebhook,
  webhookNow,
} from '../support/webhooks.ts';

const clock = manualClock();
/** A platform that gives receivers so long to answer. */
const startWaiting = (timeoutMs: number) =>
  startStaged({
    clock,
    environment: {
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      WEBHOOK_TIMEOUT_MS: String(timeoutMs),
    },
    parts: { webhookEgress: { ca: receiverAuthority } },
  });
let platform: Platform;
/** For answers that come at the deadline only; to others a busy machine gives their time. */
let impatient: Platform;
beforeAll(async () => {
  platform = await startWaiting(30_000);
  impatient = await startWaiting(3_000);
});
afterAll(async () => {
  await platform.stop();
  await impatient.stop();
});

let receiver: TlsReceiver;
let tenant: Tenant;
beforeEach(async () => {
  receiver = await startTlsReceiver();
  tenant = await newTenant(platform);
});
afterEach(() => receiver.close());

const minutes = 60_000;
const retryDelays = [30_000, 2 * minutes, 10 * minutes, 60 * minutes, 360 * minutes];

/** The newest delivery, once this many attempts at it have ended. */
const afterAttempts = (webhook: { id: string }, n: number) =>
  deliveryOnce(tenant, webhook, (one) => one.attempts.length === n);

/** Makes `n` things happen one after the other, each delivery ending before the next begins. */
async function endings(webhook: { id: string }, n: number, status: string): Promise<void> {
  const before = (await deliveriesOf(tenant, webhook)).length;
  for (let i = 1; i <= n; i += 1) {
    await happen(tenant);
    await waitFor(
      async () => {
        const deliveries = await deliveriesOf(tenant, webhook);
        return deliveries.length === before + i && deliveries[0].status === status;
      },
      { describe: `delivery ${before + i} is ${status}` },
    );
  }
}

describe('a delivery that fails', () => {
  test('is retried 5 times, after 30 s, 2 min, 10 min, 1 h and 6 h, with the same id and bytes', async () => {
    receiver.answers({ status: 500, body: 'not today' });
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);
    let due = clock.now();

    for (const [i, delay] of retryDelays.entries()) {
      const { attempts, next_attempt_at, status } = await afterAttempts(webhook, i + 1);
      expect(status).toBe('pending');
      expect(Date.parse(attempts[i].started_at)).toBe(due);
      due += delay;
      expect(Date.parse(next_attempt_at)).toBe(due);
      clock.advance(delay);
    }
    const delivery = await deliveryIn(tenant, webhook, 'failed');

    expect(delivery.attempts).toMatchObject(
      [1, 2, 3, 4, 5, 6].map((attempt) => ({ attempt, status: 500, response: 'not today' })),
    );
    expect(delivery.attempts.every(({ error }: { error: string }) => error.length > 0)).toBe(true);
    expect(Date.parse(delivery.attempts[5].started_at)).toBe(due);
    expect(delivery).toMatchObject({ next_attempt_at: null, finished_at: expect.any(String) });
    const [first, ...others] = await receiver.received(6);
    for (const { body, headers } of others) {
      expect(body.equals(first?.body ?? Buffer.alloc(0))).toBe(true);
      expect(headers['x-service-delivery']).toBe(first?.headers['x-service-delivery']);
      expect(headers['x-service-signature']).toBe(first?.headers['x-service-signature']);
    }
    expect(others.map(({ headers }) => Number(headers['webhook-timestamp']))).toEqual(
      delivery.attempts
        .slice(1)
        .map(({ started_at }: { started_at: string }) => Math.floor(Date.parse(started_at) / 1000)),
    );
  });

  test('marks its webhook as failing when its retries are exhausted, and not before', async () => {
    receiver.answers({ status: 500 });
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);

    for (const [i, delay] of retryDelays.entries()) {
      await afterAttempts(webhook, i + 1);
      expect(await webhookNow(tenant, webhook)).toMatchObject({
        failing: false,
        consecutive_failures: 0,
      });
      clock.advance(delay);
    }
    await deliveryIn(tenant, webhook, 'failed');

    expect(await webhookNow(tenant, webhook)).toMatchObject({
      active: true,
      failing: true,
      consecutive_failures: 1,
    });
  });

  test('and arrives at a retry is delivered', async () => {
    receiver.answers({ status: 502 });
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);
    await afterAttempts(webhook, 1);
    receiver.answers({ status: 204 });

    clock.advance(30_000);
    const delivery = await deliveryIn(tenant, webhook, 'delivered');

    expect(delivery.attempts.map(({ status }: { status: number }) => status)).toEqual([502, 204]);
    expect(await webhookNow(tenant, webhook)).toMatchObject({ failing: false });
  });

  test('with 410 is not retried', async () => {
    receiver.answers({ status: 410 });
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);

    const delivery = await deliveryIn(tenant, webhook, 'failed');

    expect(delivery).toMatchObject({ attempts: [{ status: 410 }], next_attempt_at: null });
    expect(await webhookNow(tenant, webhook)).toMatchObject({
      active: true,
      failing: true,
      consecutive_failures: 1,
    });
  });
});

describe('an answer', () => {
  test.each([200, 201, 202, 204, 226, 299])('of %i is success', async (status) => {
    receiver.answers({ status });
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);

    const delivery = await deliveryIn(tenant, webhook, 'delivered');

    expect(delivery.attempts).toMatchObject([{ attempt: 1, status, error: null }]);
  });

  test.each([300, 304, 400, 401, 404, 409, 429, 500, 503, 599])(
    'of %i is a failure',
    async (status) => {
      receiver.answers({ status });
      const webhook = await newWebhook(tenant, receiver.origin);
      await happen(tenant);

      const { attempts, next_attempt_at } = await afterAttempts(webhook, 1);

      expect(attempts).toMatchObject([{ status, error: `The receiver answered ${status}` }]);
      expect(Date.parse(next_attempt_at)).toBe(clock.now() + 30_000);
    },
  );

  test.each([301, 302, 303, 307, 308])('of %i is a failure, and not followed', async (status) => {
    const target = await startTlsReceiver();
    receiver.answers({ status, headers: { location: `${target.origin}/inside` } });
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);

    const { attempts } = await afterAttempts(webhook, 1);

    expect(attempts).toMatchObject([{ status, error: expect.any(String) }]);
    expect(target.connections()).toBe(0);
    await target.close();
  });

  /** What a receiver may do instead of answering, and what is recorded of it. */
  const faults: [string, Script, Record<string, unknown>][] = [
    ['does not come', { does: 'hang' }, { status: null }],
    ['is a reset', { does: 'reset' }, { status: null }],
    ['is not HTTP', { does: 'write', bytes: 'SSH-2.0-OpenSSH_9.2\r\n\r\n' }, { status: null }],
    ['is empty', { does: 'write', bytes: '' }, { status: null }],
    [
      'has headers without end',
      { status: 200, headers: { a: 'x'.repeat(40_000) } },
      { status: null },
    ],
    [
      'is 500 and drips',
      { does: 'drip', status: 500, everyMs: 50 },
      { status: 500, response: expect.stringMatching(/^\.+$/) },
    ],
    [
      'is 500 and never ends',
      { does: 'flood', status: 500 },
      { status: 500, response: 'x'.repeat(1_024) },
    ],
    [
      'is 500 and breaks off',
      { does: 'break', status: 500 },
      { status: 500, response: 'x'.repeat(500) },
    ],
  ];

  test.each(faults)('that %s is a failure by the deadline', async (_how, script, recorded) => {
    tenant = await newTenant(impatient);
    receiver.answers(script);
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);

    // Without a deadline most of them would never end.
    const { attempts } = await afterAttempts(webhook, 1);

    expect(attempts).toMatchObject([{ ...recorded, error: expect.stringMatching(/\S/) }]);
    expect(attempts[0].error).not.toMatch(/undici|UND_ERR|node:|127\.0\.0\.1:\d+.*stack/);
  });

  test.each([
    ['drips', { does: 'drip', status: 200, everyMs: 50 }],
    ['never ends', { does: 'flood', status: 200 }],
    ['breaks off', { does: 'break', status: 200 }],
  ] satisfies [string, Script][])('of 2xx counts even when its body %s', async (_how, script) => {
    tenant = await newTenant(impatient);
    receiver.answers(script);
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);

    const delivery = await deliveryIn(tenant, webhook, 'delivered');

    expect(delivery.attempts).toMatchObject([{ attempt: 1, status: 200 }]);
  });

  test('that never comes, because no server listens, is a failure', async () => {
    const { origin } = receiver;
    await receiver.close();
    const webhook = await newWebhook(tenant, origin);
    await happen(tenant);

    const { attempts } = await afterAttempts(webhook, 1);

    expect(attempts).toMatchObject([{ status: null, error: expect.stringMatching(/refused/i) }]);
    receiver = await startTlsReceiver();
  });
});

describe('consecutive failures', () => {
  test('9, a success and 9 again leave the webhook active; the 10th in a row does not', async () => {
    const webhook = await newWebhook(tenant, receiver.origin);
    receiver.answers({ status: 410 });
    await endings(webhook, 9, 'failed');
    const nine = await webhookNow(tenant, webhook);
    receiver.answers({ status: 200 });
    await endings(webhook, 1, 'delivered');
    const recovered = await webhookNow(tenant, webhook);
    receiver.answers({ status: 410 });
    await endings(webhook, 9, 'failed');
    const nineAgain = await webhookNow(tenant, webhook);
    await endings(webhook, 1, 'failed');
    const ten = await webhookNow(tenant, webhook);

    const marks = [nine, recovered, nineAgain, ten].map(
      ({ active, failing, consecutive_failures }) => [active, failing, consecutive_failures],
    );
    expect(marks).toEqual([
      [true, true, 9],
      [true, false, 0],
      [true, true, 9],
      [false, true, 10],
    ]);
  });

  test('of 10 deliveries cancel the pending ones', async () => {
    const webhook = await newWebhook(tenant, receiver.origin);
    receiver.answers({ status: 500 });
    await happen(tenant);
    const waiting = await afterAttempts(webhook, 1);
    receiver.answers({ status: 410 });

    await endings(webhook, 10, 'failed');

    const oldest = (await deliveriesOf(tenant, webhook)).at(-1);
    expect(oldest).toMatchObject({ id: waiting.id, status: 'cancelled', next_attempt_at: null });
    await happen(tenant);
    clock.advance(30_000);
    expect(await deliveriesOf(tenant, webhook)).toHaveLength(11);
  });

  test('start at zero when the webhook is activated again, which stays failing until a success', async () => {
    const webhook = await newWebhook(tenant, receiver.origin);
    receiver.answers({ status: 410 });
    await endings(webhook, 10, 'failed');

    const { body } = await tenant.put(`/api/agent-webhooks/${webhook.id}`, { active: true });
    await endings(webhook, 1, 'failed');
    const afterOneMore = await webhookNow(tenant, webhook);
    receiver.answers({ status: 200 });
    await endings(webhook, 1, 'delivered');

    expect(body).toMatchObject({ active: true, failing: true, consecutive_failures: 0 });
    expect(afterOneMore).toMatchObject({ active: true, failing: true, consecutive_failures: 1 });
    expect(await webhookNow(tenant, webhook)).toMatchObject({ active: true, failing: false });
  });
});

describe('a webhook that is switched off', () => {
  test('has its waiting deliveries cancelled, and they stay so', async () => {
    receiver.answers({ status: 500 });
    const webhook = await newWebhook(tenant, receiver.origin);
    await happen(tenant);
    await afterAttempts(webhook, 1);

    await tenant.put(`/api/agent-webhooks/${webhook.id}`, { active: false });
    const [delivery] = await deliveriesOf(tenant, webhook);
    await tenant.put(`/api/agent-webhooks/${webhook.id}`, { active: true });
    receiver.answers({ status: 200 });
    clock.advance(30_000);
    await endings(webhook, 1, 'delivered');

    expect(delivery).toMatchObject({ status: 'cancelled', next_attempt_at: null });
    expect(await deliveriesOf(tenant, webhook)).toMatchObject([
      { status: 'delivered' },
      { id: delivery.id, status: 'cancelled', attempts: [{ status: 500 }] },
    ]);
    expect(receiver.requests).toHaveLength(2);
  });

  test('or deleted while an attempt is under way ends with that attempt', async () => {
    const answer = Promise.withResolvers<void>();
    receiver.answers(({ path }) => ({
      status: path === '/refused' ? 500 : 200,
      after: answer.promise,
    }));
    const [taken, refused, gone] = [
      await newWebhook(tenant, `${receiver.origin}/taken`),
      await newWebhook(tenant, `${receiver.origin}/refused`),
      await newWebhook(tenant, `${receiver.origin}/gone`),
    ];
    await happen(tenant);
    await receiver.received(3);

    for (const { id } of [taken, refused]) {
      await tenant.put(`/api/agent-webhooks/${id}`, { active: false });
    }
    await tenant.delete(`/api/agent-webhooks/${gone.id}`);
    answer.resolve();

    await deliveryIn(tenant, taken, 'delivered');
    await deliveryIn(tenant, refused, 'cancelled');
    expect((await tenant.get('/api/agent-webhooks')).body).toMatchObject([
      { id: refused.id, active: false },
      { id: taken.id, active: false },
    ]);
  });
});

describe('receivers that do not answer for long', () => {
  /** Runs a skill so often: as many `conversation.created`. */
  const runs = (of: Tenant, n: number) =>
    Promise.all(Array.from({ length: n }, (_, i) => of.run('util/v1.0/echo', { text: `${i}` })));

  test('get at most 20 attempts at a time, with any number of webhooks', async () => {
    receiver.answers({ does: 'hang' });
    const events = ['conversation.created'];
    for (let i = 0; i < 5; i += 1) await newWebhook(tenant, receiver.origin, { events });

    await runs(tenant, 40);

    await receiver.received(20);
    expect(receiver.mostAtATime()).toBeLessThanOrEqual(20);
  });

  test('do not hold up quick receivers, though there are more calls to them than slots', async () => {
    const patient = await startStaged({
      environment: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_TIMEOUT_MS: '60000' },
      parts: { webhookEgress: { ca: receiverAuthority, resolve: async () => ['127.0.0.1'] } },
    });
    const other = await newTenant(patient);
    const quick = await startTlsReceiver();
    await newWebhook(other, quick.origin, { events: ['conversation.created'] });
    await runs(other, 20);
    await quick.received(20);
    const answer = Promise.withResolvers<void>();
    receiver.answers({ status: 200, after: answer.promise });
    const slow: { id: string }[] = [];
    for (let host = 0; host < 26; host += 1) {
      slow.push(await newWebhook(other, `https://h${host}.receiver.test:${receiver.port}/`));
    }
    for (let i = 0; i < 20; i += 1) await happen(other);
    for (const webhook of slow) {
      await waitFor(async () => (await deliveriesOf(other, webhook)).length === 20, {
        describe: 'all 520 are there to be sent',
      });
    }
    await receiver.received(250);

    await runs(other, 40);
    await quick.received(60, 60_000);

    expect(receiver.mostAtATime()).toBeLessThanOrEqual(250);
    answer.resolve();
    await receiver.received(520);
    await patient.stop();
    await quick.close();
  });
});
