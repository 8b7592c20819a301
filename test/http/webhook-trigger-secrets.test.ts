import { createHmac } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { serviceUnavailable } from '../support/broken-database.ts';
import { startPlatform } from '../support/platform.ts';
import { type PlatformProcess, startProcess } from '../support/process.ts';
import { newTenant } from '../support/tenant.ts';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'skillwright-trigger-secrets-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const signing_secret = 'the-signing-secret-of-the-tests';
const fields = {
  agent_id: 'default',
  name: 'x',
  skill_category: 'util',
  skill_name: 'echo',
  signing_secret,
};

/** Everything that can be done with a trigger, wrong uses included; its token. */
async function useEverywhere(platform: PlatformProcess): Promise<string> {
  const tenant = await newTenant(platform);
  const { id, token } = (await tenant.post('/api/agent-triggers', fields)).body;
  const path = `/api/webhooks/agent/${token}`;
  const signature = createHmac('sha256', signing_secret).update('{"text":"x"}').digest('hex');
  const signed = { 'x-hub-signature-256': `sha256=${signature}` };
  const call = (more: object = {}) =>
    platform.request('POST', path, { body: '{"text":"x"}', headers: signed, ...more });
  const accepted = await call();
  expect(accepted.status).toBe(202);
  await tenant.jobIn(accepted.body.job_id, 'completed');
  await call({ headers: {} });
  await call({ body: '{' });
  await call({ body: 'x'.repeat(1_100_000) });
  for (const method of ['GET', 'PUT', 'DELETE']) await platform.request(method, path);
  await platform.request('POST', `${path}/deeper?again=${token}`);
  await platform.request('POST', `/api/webhooks/agent/${token}%FF`);
  await tenant.get(`/api/agent-triggers/${token}`);
  await platform.request('GET', '/api/jobs', { key: token });
  await tenant.put(`/api/agent-triggers/${id}`, { active: false });
  await call();
  await platform.admin('DELETE', `/admin/api-keys/${tenant.keyId}`);
  return token;
}

test('a token is in no file of the database, no log line, and not in /metrics', async () => {
  const platform = await startProcess(dataDir, { LOG_LEVEL: 'trace', EXECUTORS: '1' });

  const token = await useEverywhere(platform);

  const metrics = (await platform.request('GET', '/metrics')).text;
  await platform.stop();
  for (const text of [metrics, platform.output()]) {
    expect(text).not.toContain(token);
    expect(text).not.toContain(token.slice(4));
    expect(text).not.toContain(signing_secret);
  }
  const files = readdirSync(dataDir);
  expect(files).toContain('skillwright.db');
  for (const name of files) {
    expect(readFileSync(join(dataDir, name)).includes(token.slice(4)), name).toBe(false);
  }
  expect(metrics).toMatch(/path="\/api\/webhooks\/agent\/:webhookToken",status="202"/);
});

test('a failure at a call is logged without its token', async () => {
  const lines: string[] = [];
  const log = createLogger('trace', { write: (line) => void lines.push(line) });
  const platform = await startPlatform({ log });
  const tenant = await newTenant(platform);
  const { token } = (await tenant.post('/api/agent-triggers', fields)).body;
  const read = platform.database.read as { first: unknown };
  const { first } = read;

  for (const fault of [serviceUnavailable(), new Error('something broke')]) {
    read.first = () => Promise.reject(fault);
    const answer = await platform.request('POST', `/api/webhooks/agent/${token}`, { body: {} });
    read.first = first;
    expect([500, 503]).toContain(answer.status);
    expect(answer.text).not.toContain(token);
  }

  await platform.stop();
  expect(lines.join('')).toContain('something broke');
  expect(lines.join('')).not.toContain(token.slice(4));
});
