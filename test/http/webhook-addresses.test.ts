import net, { type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { manualClock } from '../support/manual-clock.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { newTenant } from '../support/tenant.ts';
import { receiverAuthority, startTlsReceiver, type TlsReceiver } from '../support/tls-receiver.ts';
import { deliveryOnce, happen, newWebhook } from '../support/webhooks.ts';

const clock = manualClock();
/** What names resolve to, as the tests go. */
const names = new Map<string, readonly string[]>();
const resolve = async (name: string): Promise<readonly string[]> => {
  const addresses = names.get(name);
  if (addresses === undefined) throw new Error('ENOTFOUND');
  return addresses;
};

/** The default: public addresses alone. */
let strict: Platform;
/** With a list of the operator's. */
let permissive: Platform;
beforeAll(async () => {
  const webhookEgress = { ca: receiverAuthority, resolve };
  strict = await startPlatform({ clock, parts: { webhookEgress } });
  permissive = await startPlatform({
    clock,
    parts: { webhookEgress },
    environment: { WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32' },
  });
});
afterAll(() => Promise.all([strict.stop(), permissive.stop()]));

let receiver: TlsReceiver;
beforeEach(async () => {
  receiver = await startTlsReceiver();
});
afterEach(() => receiver.close());

/** The first attempt of a delivery to this url, once it has ended. */
async function firstAttempt(platform: Platform, url: string) {
  const tenant = await newTenant(platform);
  const webhook = await newWebhook(tenant, url);
  await happen(tenant);
  const { attempts, status } = await deliveryOnce(
    tenant,
    webhook,
    (one) => one.attempts.length === 1,
  );
  return { ...attempts[0], delivery: status };
}

describe('a name that leads to an address that is not public', () => {
  test.each([
    ['loopback', ['127.0.0.1']],
    ['all of loopback', ['127.255.255.254']],
    ['loopback of IPv6', ['::1']],
    ['this host', ['0.0.0.0']],
    ['no address', ['::']],
    ['loopback, mapped into IPv6', ['::ffff:127.0.0.1']],
    ['loopback, mapped in hexadecimal', ['::ffff:7f00:1']],
    ['loopback, behind NAT64', ['64:ff9b::7f00:1']],
    ['loopback, by 6to4', ['2002:7f00:1::']],
    ['a private network', ['10.1.2.3']],
    ['another one', ['172.31.255.255']],
    ['and another', ['192.168.0.1']],
    ['a shared network', ['100.64.0.1']],
    ['a cloud', ['169.254.169.254']],
    ['another cloud', ['100.100.100.200']],
    ['a third', ['168.63.129.16']],
    ['a fourth', ['fd00:ec2::254']],
    ['many listeners', ['224.0.0.1']],
    ['documentation', ['2001:db8::1']],
    ['a public and a private one', ['93.184.216.34', '127.0.0.1']],
    ['a private and a public one', ['127.0.0.1', '93.184.216.34']],
    ['something that is no address', ['127.1']],
  ])('fails without a packet sent: %s', async (what, addresses) => {
    const name = `${what.replaceAll(/[^a-z0-9]+/gi, '-').toLowerCase()}.receiver.test`;
    names.set(name, addresses);

    const attempt = await firstAttempt(strict, `https://${name}:${receiver.port}/`);

    expect(attempt).toMatchObject({ status: null, response: null, delivery: 'pending' });
    expect(attempt.error).toMatch(/not allowed/);
    // The resolver's answer must not leak.
    for (const address of addresses) expect(attempt.error).not.toContain(address);
    expect(receiver.connections()).toBe(0);
  });

  test('fails though it led to an allowed one at the attempt before', async () => {
    const name = 'rebinds.receiver.test';
    names.set(name, ['127.0.0.1']);
    receiver.answers({ status: 500 });
    let others = 0;
    const inside = net.createServer((socket) => {
      others += 1;
      socket.destroy();
    });
    await new Promise<void>((done) => inside.listen(receiver.port, '127.0.0.2', done));
    const tenant = await newTenant(permissive);
    const webhook = await newWebhook(tenant, `https://${name}:${receiver.port}/`);
    await happen(tenant);
    await deliveryOnce(tenant, webhook, (one) => one.attempts.length === 1);

    names.set(name, ['127.0.0.2']);
    clock.advance(30_000);
    const { attempts } = await deliveryOnce(tenant, webhook, (one) => one.attempts.length === 2);

    expect(attempts).toMatchObject([
      { status: 500 },
      { status: null, error: expect.stringMatching(/not allowed/) },
    ]);
    expect([receiver.connections(), others]).toEqual([1, 0]);
    inside.close();
  });

  test('fails on a port where stores listen, public though its address is', async () => {
    names.set('store.receiver.test', ['93.184.216.34']);

    const attempt = await firstAttempt(permissive, 'https://store.receiver.test:6379/');

    expect(attempt.error).toMatch(/[Pp]ort 6379/);
  });
});

describe('a name that', () => {
  test('leads to an address of the list is delivered to', async () => {
    names.set('good.receiver.test', ['127.0.0.1']);

    const attempt = await firstAttempt(permissive, `https://good.receiver.test:${receiver.port}/`);

    expect(attempt).toMatchObject({ status: 200, error: null, delivery: 'delivered' });
    expect(receiver.requests[0]?.headers['host']).toBe(`good.receiver.test:${receiver.port}`);
  });

  test('does not exist is a failure', async () => {
    const attempt = await firstAttempt(permissive, 'https://nobody.receiver.test/');

    expect(attempt).toMatchObject({ status: null, delivery: 'pending' });
    expect(attempt.error).toMatch(/resolved/);
  });
});

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])(
    'of %i to an address inside is not followed',
    async (status) => {
      const inside = await startTlsReceiver();
      receiver.answers({ status, headers: { location: `${inside.origin}/secrets` } });

      const attempt = await firstAttempt(permissive, receiver.origin);

      expect(attempt).toMatchObject({ status, delivery: 'pending' });
      expect(inside.connections()).toBe(0);
      await inside.close();
    },
  );
});

describe('the certificate of the receiver', () => {
  test('must be for its name', async () => {
    names.set('other.test', ['127.0.0.1']);

    const attempt = await firstAttempt(permissive, `https://other.test:${receiver.port}/`);

    expect(attempt).toMatchObject({ status: null, delivery: 'pending' });
    expect(attempt.error).toMatch(/secure connection/);
    expect(receiver.requests).toEqual([]);
  });

  test('must be of an authority that is trusted', async () => {
    const trusting = await startPlatform({
      environment: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' },
    });

    const attempt = await firstAttempt(trusting, receiver.origin);
    await trusting.stop();

    expect(attempt).toMatchObject({ status: null, delivery: 'pending' });
    expect(attempt.error).toMatch(/secure connection/);
    expect(receiver.requests).toEqual([]);
  });

  test('is required: a receiver with plain HTTP gets no data', async () => {
    let bytes = '';
    const plain = net.createServer((socket) => {
      socket
        .on('error', () => {})
        .on('data', (chunk) => {
          bytes += chunk.toString('latin1');
          socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
        });
    });
    await new Promise<void>((done) => plain.listen(0, '127.0.0.1', done));
    const { port } = plain.address() as AddressInfo;

    const attempt = await firstAttempt(permissive, `https://127.0.0.1:${port}/`);

    expect(attempt).toMatchObject({ status: null, delivery: 'pending' });
    expect(bytes).not.toContain('agent.status_changed');
    plain.close();
  });
});
