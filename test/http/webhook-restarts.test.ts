import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { manualClock } from '../support/manual-clock.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { dataDirectory } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { receiverAuthority, startTlsReceiver, type TlsReceiver } from '../support/tls-receiver.ts';
import { deliveryIn, deliveryOnce, happen, newWebhook } from '../support/webhooks.ts';

const clock = manualClock();
let receiver: TlsReceiver;
let start: () => Promise<Platform>;
let platform: Platform;
let tenant: Tenant;
let webhook: { id: string };

beforeEach(async () => {
  receiver = await startTlsReceiver();
  const environment = {
    DATA_DIR: dataDirectory(),
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    SHUTDOWN_GRACE_MS: '1000',
  };
  start = () =>
    startPlatform({ clock, environment, parts: { webhookEgress: { ca: receiverAuthority } } });
  platform = await start();
  tenant = await newTenant(platform);
  webhook = await newWebhook(tenant, receiver.origin);
});
afterEach(async () => {
  await platform.stop();
  await receiver.close();
});

/** Starts the platform on what the last one left; the tenant as seen through it. */
async function restarted(): Promise<Tenant> {
  platform = await start();
  return await newTenant(platform, { organization_id: tenant.organization });
}

describe('when the platform stops', () => {
  test('a delivery under way is let end, and is not sent again', async () => {
    const answer = Promise.withResolvers<void>();
    receiver.answers({ status: 200, after: answer.promise });
    await happen(tenant);
    await receiver.received(1);

    const stopped = platform.stop();
    answer.resolve();
    await stopped;
    const delivery = await deliveryIn(await restarted(), webhook, 'delivered');

    expect(delivery.attempts).toMatchObject([{ attempt: 1, status: 200 }]);
    expect(receiver.requests).toHaveLength(1);
  });

  test('a delivery that does not end in time is sent again at the next start, the same', async () => {
    receiver.answers({ does: 'hang' });
    await happen(tenant);
    const [before] = await receiver.received(1);

    await platform.stop();
    receiver.answers({ status: 200 });
    const delivery = await deliveryIn(await restarted(), webhook, 'delivered');

    const after = receiver.requests[1];
    expect(after?.body.equals(before?.body ?? Buffer.alloc(0))).toBe(true);
    expect(after?.headers['x-service-delivery']).toBe(before?.headers['x-service-delivery']);
    expect(delivery.attempts.at(-1)).toMatchObject({ status: 200 });
  });

  test('an event just before is delivered once after the next start', async () => {
    await happen(tenant);
    await platform.stop();

    await deliveryIn(await restarted(), webhook, 'delivered');

    expect(receiver.requests).toHaveLength(1);
  });
});

test('a restart continues the retries', async () => {
  receiver.answers({ status: 500 });
  await happen(tenant);
  const first = await deliveryOnce(tenant, webhook, (one) => one.attempts.length === 1);

  await platform.stop();
  const again = await restarted();
  const waiting = await deliveryIn(again, webhook, 'pending');
  clock.advance(30_000);
  const second = await deliveryOnce(again, webhook, (one) => one.attempts.length === 2);

  expect(waiting).toEqual(first);
  expect(second.id).toBe(first.id);
  expect(Date.parse(second.attempts[1].started_at)).toBe(Date.parse(first.next_attempt_at));
});
