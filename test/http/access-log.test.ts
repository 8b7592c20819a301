/** Log lines of requests: one each with ACCESS_LOG, an audit line for deletions, no secrets. */
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { adminSecret, startPlatform } from '../support/platform.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

// biome-ignore lint/suspicious/noExplicitAny: lines of a log have many shapes
type Line = any;

async function started(environment: Record<string, string>) {
  const texts: string[] = [];
  const log = createLogger('info', { write: (text: string) => texts.push(text) });
  const platform = await startPlatform({ log, environment });
  onTestFinished(() => platform.stop());
  const lines = (): Line[] => texts.map((text) => JSON.parse(text));
  return { platform, texts, lines };
}

test('with ACCESS_LOG each request has a line, without path, query, key or token', async () => {
  const { platform, texts, lines } = await started({ ACCESS_LOG: 'on' });
  const tenant = await newTenant(platform);
  const created = await tenant.post('/api/agent-triggers', {
    agent_id: 'default',
    name: 'Any',
    skill_category: 'util',
    skill_name: 'echo',
    mapping: '{"text": query.text}',
  });
  const { pathname } = new URL(created.body.url);

  const called = await platform.request('POST', `${pathname}?text=in-the-query`);
  await tenant.get('/api/jobs?limit=1&q=in-the-query');
  await platform.request('GET', '/nowhere/in-the-path');

  const requests = () => lines().filter(({ msg }) => msg === 'request');
  await waitFor(() => requests().length === 5, { describe: 'five lines' });
  expect(requests().map(({ method, route, status }) => `${method} ${route} ${status}`)).toEqual([
    'POST /admin/api-keys 201',
    'POST /api/agent-triggers 201',
    'POST /api/webhooks/agent/:webhookToken 202',
    'GET /api/jobs 400',
    'GET unmatched 404',
  ]);
  expect(requests()[2].request_id).toBe(called.headers.get('x-request-id'));
  expect(requests()[3]).toMatchObject({
    address: '127.0.0.1',
    organization_id: tenant.organization,
    api_key_id: tenant.keyId,
    ms: expect.any(Number),
  });
  for (const secret of [tenant.key, adminSecret, created.body.token, 'in-the-query', 'in-the-path'])
    expect(texts.join('')).not.toContain(secret);
});

test('without it requests have no line, but deletions and revocations have an audit line', async () => {
  const { platform, lines } = await started({});
  const tenant = await newTenant(platform);
  await tenant.post('/api/agents', { id: 'reader' });

  await tenant.delete('/api/agents/reader');
  await tenant.delete('/api/agents/nothing');
  await platform.admin('DELETE', `/admin/api-keys/${tenant.keyId}`);

  const audits = () => lines().filter(({ audit }) => audit !== undefined);
  await waitFor(() => audits().length === 2, { describe: 'two lines of audit' });
  expect(audits()).toEqual([
    expect.objectContaining({
      audit: 'deleted',
      route: '/api/agents/:agentId',
      params: { agentId: 'reader' },
      api_key_id: tenant.keyId,
    }),
    expect.objectContaining({
      audit: 'deleted',
      route: expect.stringMatching(/^\/admin\/api-keys\/:/),
      address: '127.0.0.1',
    }),
  ]);
  expect(lines().filter(({ msg }) => msg === 'request')).toEqual([]);
});
