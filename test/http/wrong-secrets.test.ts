/** Wrong secrets are limited before they are compared, on /admin and in the console together. */
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { expectRefusal } from '../support/expectations.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { adminSecret, type Platform, startPlatform } from '../support/platform.ts';

async function started(): Promise<{ platform: Platform; clock: ManualClock; lines: string[] }> {
  const clock = manualClock();
  const lines: string[] = [];
  const log = createLogger('info', { write: (line: string) => lines.push(line) });
  const platform = await startPlatform({
    clock,
    log,
    environment: { WRONG_SECRETS_PER_MINUTE: '30' },
    parts: { consoleFiles: async () => '/nowhere' },
  });
  onTestFinished(() => platform.stop());
  return { platform, clock, lines };
}

const adminWith = (platform: Platform, secret: string) =>
  platform.request('GET', '/admin/api-keys', { headers: { 'x-admin-secret': secret } });
const signInWith = (platform: Platform, secret: string) =>
  platform.request('POST', '/console/session', { body: { secret } });

test('after 30 wrong secrets in a minute, no secret of the address is compared until they expire', async () => {
  const { platform, clock } = await started();

  const statuses: number[] = [];
  for (let i = 0; i < 15; i++) {
    statuses.push((await adminWith(platform, 'wrong')).status);
    statuses.push((await signInWith(platform, 'wrong')).status);
  }

  expect(statuses).toEqual(Array.from({ length: 30 }, () => 401));
  for (const send of [adminWith, signInWith]) {
    for (const secret of ['wrong', adminSecret]) {
      expectRefusal(await send(platform, secret), 429, 'rate_limit_exceeded');
    }
  }
  clock.advance(61_000);
  expect((await adminWith(platform, adminSecret)).status).toBe(200);
  expect((await signInWith(platform, adminSecret)).status).toBe(200);
});

test.each([
  ['/admin', adminWith],
  ['the console', signInWith],
])('of 200 wrong secrets that arrive at once, 30 are compared: %s', async (_where, send) => {
  const { platform } = await started();

  const answers = await Promise.all(
    Array.from({ length: 200 }, () => send(platform, 'sk_wrong-secret')),
  );

  expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(30);
  expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(170);
});

test('of 30 that arrive at once after 29 wrong ones, one is compared', async () => {
  const { platform } = await started();
  for (let i = 0; i < 29; i++) await signInWith(platform, 'sk_wrong-secret');

  const answers = await Promise.all(
    Array.from({ length: 30 }, () => signInWith(platform, 'sk_wrong-secret')),
  );

  expect(answers.filter(({ status }) => status === 401)).toHaveLength(1);
});

test('right secrets and unknown API keys do not count', async () => {
  const { platform } = await started();

  for (let i = 0; i < 40; i++) {
    expect((await adminWith(platform, adminSecret)).status).toBe(200);
    expect((await platform.request('GET', '/api/jobs', { key: 'sk_wrong' })).status).toBe(401);
  }
});

test('each wrong secret leaves a line of audit without the secret', async () => {
  const { platform, lines } = await started();

  await adminWith(platform, 'a-wrong-secret');
  await signInWith(platform, 'a-wrong-secret');

  const audits = lines.map((line) => JSON.parse(line)).filter(({ audit }) => audit !== undefined);
  expect(audits).toEqual([
    expect.objectContaining({ audit: 'wrong_secret', address: '127.0.0.1', method: 'GET' }),
    expect.objectContaining({ audit: 'wrong_secret', route: '/console/session' }),
  ]);
  expect(lines.join('')).not.toContain('a-wrong-secret');
});
