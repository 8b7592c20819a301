import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { adminSecret } from '../support/platform.ts';
import { type PlatformProcess, spawnPlatform, startProcess } from '../support/process.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'skillwright-secrets-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

/** Names of the files in the data directory that contain a text. */
function filesWith(text: string): string[] {
  return readdirSync(dataDir, { withFileTypes: true })
    .filter((entry) => entry.isFile() && readFileSync(join(dataDir, entry.name)).includes(text))
    .map(({ name }) => name);
}

/** Of a webhook and of a trigger. */
const signingSecrets = ['webhook-secret-of-the-tests', 'trigger-secret-of-the-tests'];

/** Everything that a client may do with a key and a secret, wrong uses included. */
async function useEverywhere(platform: PlatformProcess): Promise<string> {
  const { key, keyId, ...tenant } = await newTenant(platform);
  await tenant.run('util/v1.0/echo', { text: 'x' });
  await tenant.post('/api/util/v1.0/echo', { text: 'x' }, { 'idempotency-key': 'one' });
  await tenant.post('/api/util/v1.0/echo', '{');
  await tenant.post('/api/agent-webhooks', {
    agent_id: 'default',
    url: 'https://a.example/',
    events: ['agent.error'],
    secret: signingSecrets[0],
  });
  await tenant.post('/api/agent-triggers', {
    agent_id: 'default',
    name: 'signed',
    signing_secret: signingSecrets[1],
  });
  await tenant.get('/api/nowhere');
  await tenant.get(`/api/agents/${key}`);
  await platform.request('GET', `/api/jobs?key=${key}&secret=${adminSecret}`);
  await platform.request('GET', '/api/jobs', { headers: { authorization: `Bearer ${key}` } });
  await platform.request('GET', '/api/jobs', { key: adminSecret });
  await platform.request('GET', '/admin/api-keys', { headers: { 'x-admin-secret': key } });
  await platform.admin('GET', '/admin/api-keys');
  await platform.admin('DELETE', `/admin/api-keys/${keyId}`);
  await tenant.get('/api/jobs');
  return key;
}

describe('the plaintext of a key, the admin secret and signing secrets', () => {
  test('are in no file of the database, no log line, and not in /metrics', async () => {
    const platform = await startProcess(dataDir, { LOG_LEVEL: 'trace', EXECUTORS: '1' });

    const key = await useEverywhere(platform);

    const metrics = (await platform.request('GET', '/metrics')).text;
    const whileItRuns = [filesWith(key), filesWith(adminSecret)];
    await platform.stop();
    for (const secret of [key, key.slice(3), adminSecret, ...signingSecrets]) {
      expect(metrics).not.toContain(secret);
      expect(platform.output()).not.toContain(secret);
      expect(filesWith(secret)).toEqual([]);
    }
    expect(whileItRuns).toEqual([[], []]);
    expect(readdirSync(dataDir)).toContain('skillwright.db');
  });
});

describe('without ADMIN_SECRET', () => {
  const environment = { ADMIN_SECRET: undefined, EXECUTORS: '1' };

  test('one is generated, shown once at the first start with any log level, and kept with mode 0600', async () => {
    const first = await startProcess(dataDir, { ...environment, LOG_LEVEL: 'info' });
    const file = join(dataDir, 'admin-secret');
    const secret = readFileSync(file, 'utf8').trim();
    const withIt = await first.request('GET', '/admin/api-keys', {
      headers: { authorization: `Bearer ${secret}` },
    });
    await first.stop();
    const second = await startProcess(dataDir, { ...environment, LOG_LEVEL: 'trace' });
    const again = await second.request('GET', '/admin/api-keys', {
      headers: { 'x-admin-secret': secret },
    });
    await second.stop();

    expect(withIt.status).toBe(200);
    expect(again.status).toBe(200);
    expect(secret.length).toBeGreaterThanOrEqual(22);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(first.output().split(secret)).toHaveLength(2);
    expect(second.output()).not.toContain(secret);
    expect(filesWith(secret)).toEqual(['admin-secret']);
  });

  test('it is shown at the first start even when nothing is logged', async () => {
    const { child, exit, output } = spawnPlatform({
      ...environment,
      DATA_DIR: dataDir,
      LOG_LEVEL: 'silent',
    });
    await waitFor(() => output() !== '', { describe: 'something is shown', deadlineMs: 20_000 });
    child.kill('SIGTERM');
    await exit;

    const secret = readFileSync(join(dataDir, 'admin-secret'), 'utf8').trim();
    expect(output()).toContain(secret);
    expect(output().trim().split('\n')).toHaveLength(1);
  });

  test('it is shown even if that start fails', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const first = spawnPlatform({ ...environment, DATA_DIR: dataDir, PORT: String(port) });
    expect(await first.exit).toEqual({ code: 1, signal: null });

    const second = await startProcess(dataDir, environment);
    await second.stop();

    const secret = readFileSync(join(dataDir, 'admin-secret'), 'utf8').trim();
    expect(first.output().split(secret)).toHaveLength(2);
    expect(second.output()).not.toContain(secret);
  });
});
