/** A wrong secret is refused, and affects no other client's right one. */
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { consoleFilesAt } from '../support/console-files.ts';
import { expectRefusal } from '../support/expectations.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { adminSecret, type Platform, startPlatform } from '../support/platform.ts';

async function started(environment: Record<string, string> = {}) {
  const clock: ManualClock = manualClock();
  const lines: string[] = [];
  const log = createLogger('info', { write: (line: string) => lines.push(line) });
  const platform = await startPlatform({
    clock,
    log,
    environment,
    parts: { consoleFiles: consoleFilesAt('/nowhere') },
  });
  onTestFinished(() => platform.stop());
  const audits = () =>
    lines.map((line) => JSON.parse(line)).filter(({ audit }) => audit === 'wrong_secret');
  return { platform, clock, lines, audits };
}

type Send = (
  platform: Platform,
  secret: string,
  headers?: Record<string, string>,
) => ReturnType<Platform['request']>;
const adminWith: Send = (platform, secret, headers = {}) =>
  platform.request('GET', '/admin/api-keys', { headers: { 'x-admin-secret': secret, ...headers } });
const signInWith: Send = (platform, secret, headers = {}) =>
  platform.request('POST', '/console/session', { headers, body: { secret } });
const keyWith: Send = (platform, key, headers = {}) =>
  platform.request('GET', '/api/agents', { key, headers });

test.each<[string, Send, string]>([
  ['/admin', adminWith, 'invalid_admin_secret'],
  ['the console', signInWith, 'invalid_api_key'],
  ['/api', keyWith, 'invalid_api_key'],
])(
  'after 200 wrong secrets each is still 401 and the right one passes: %s',
  async (_where, send, code) => {
    const { platform } = await started();
    const key = await platform.key();

    const wrong = await Promise.all(Array.from({ length: 200 }, () => send(platform, 'sk_wrong')));

    for (const answer of wrong) expectRefusal(answer, 401, code);
    expect((await adminWith(platform, adminSecret)).status).toBe(200);
    expect((await signInWith(platform, adminSecret)).status).toBe(200);
    expect((await signInWith(platform, key)).status).toBe(200);
    expect((await keyWith(platform, key)).status).toBe(200);
    expectRefusal(await send(platform, 'sk_wrong'), 401, code);
  },
);

test('an address gets one line of audit a minute, without the secret', async () => {
  const { platform, clock, lines, audits } = await started();

  for (const send of [adminWith, signInWith, keyWith]) await send(platform, 'a-wrong-secret');

  expect(audits()).toEqual([
    expect.objectContaining({
      address: '127.0.0.1',
      method: 'GET',
      route: '/admin/api-keys',
      request_id: expect.any(String),
    }),
  ]);
  clock.advance(60_001);
  await signInWith(platform, 'a-wrong-secret');
  expect(audits()).toHaveLength(2);
  expect(audits()[1]).toMatchObject({ route: '/console/session', unlogged: 2 });
  expect(lines.join('')).not.toContain('a-wrong-secret');
});

test('requests without a secret, and with a right one, leave no line', async () => {
  const { platform, audits } = await started();
  const key = await platform.key();

  await platform.request('GET', '/admin/api-keys');
  await platform.request('GET', '/api/agents');
  await keyWith(platform, key);

  expect(audits()).toEqual([]);
});

test('behind a trusted proxy the line names the client, and each client has its own', async () => {
  const { platform, audits } = await started({ TRUSTED_PROXIES: '127.0.0.0/8' });

  for (const client of ['203.0.113.7', '203.0.113.8', '203.0.113.7']) {
    await adminWith(platform, 'wrong', { 'x-forwarded-for': `198.51.100.1, ${client}` });
  }

  expect(audits().map(({ address }) => address)).toEqual(['203.0.113.7', '203.0.113.8']);
});

test('without trusted proxies a client cannot name another address', async () => {
  const { platform, audits } = await started();

  await adminWith(platform, 'wrong', {
    'x-forwarded-for': '203.0.113.7',
    forwarded: 'for=203.0.113.7',
  });

  expect(audits().map(({ address }) => address)).toEqual(['127.0.0.1']);
});
