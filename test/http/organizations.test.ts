import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { follow } from '../support/event-stream.ts';
import { expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const randomId = '0198c0de-0000-7000-8000-000000000000';

interface Belongings {
  readonly a: Tenant;
  readonly b: Tenant;
  /** A failed job of A. */
  readonly jobId: string;
  readonly conversationId: string;
}

/** Two organizations; the first has an agent, a job and a conversation. */
async function twoOrganizations(): Promise<Belongings> {
  const [a, b] = await Promise.all([newTenant(platform), newTenant(platform)]);
  await a.post('/api/agents', { id: 'secretive' });
  const input = acting({ fail: { message: 'no', retryable: false } });
  const { body } = await a.run(play, input, { 'x-agent-id': 'secretive' });
  return { a, b, jobId: body.job_id, conversationId: body.conversation_id };
}

describe("another organization's resource behaves as one that does not exist", () => {
  test('404 not_found, with the same body and headers as a random id', async () => {
    const { b, jobId, conversationId } = await twoOrganizations();
    const paths: [method: string, path: (id: string) => string, id: string, random: string][] = [
      ['GET', (id) => `/api/jobs/${id}`, jobId, randomId],
      ['GET', (id) => `/api/jobs/${id}/events`, jobId, randomId],
      ['POST', (id) => `/api/jobs/${id}/cancel`, jobId, randomId],
      ['POST', (id) => `/api/jobs/${id}/retry`, jobId, randomId],
      ['GET', (id) => `/api/conversations/${id}`, conversationId, randomId],
      ['GET', (id) => `/api/conversations/${id}/messages`, conversationId, randomId],
      ['GET', (id) => `/api/conversations/${id}/token-usage`, conversationId, randomId],
      ['GET', (id) => `/api/agents/${id}`, 'secretive', 'nobody'],
      ['PUT', (id) => `/api/agents/${id}`, 'secretive', 'nobody'],
      ['DELETE', (id) => `/api/agents/${id}`, 'secretive', 'nobody'],
    ];
    const names = (headers: Headers) => [...headers.keys()].sort();

    for (const [method, path, id, random] of paths) {
      const options = method === 'PUT' ? { body: { name: 'mine now' } } : {};
      const theirs = await b.send(method, path(id), options);
      const nobodys = await b.send(method, path(random), options);

      expectRefusal(theirs, 404, 'not_found');
      expect(theirs.text).toBe(nobodys.text);
      expect(names(theirs.headers)).toEqual(names(nobodys.headers));
    }
  });

  test('and its resources have not changed afterwards', async () => {
    const { a, b, jobId } = await twoOrganizations();
    const job = await a.get(`/api/jobs/${jobId}`);
    const agent = await a.get('/api/agents/secretive');

    await b.post(`/api/jobs/${jobId}/cancel`);
    await b.post(`/api/jobs/${jobId}/retry`);
    await b.put('/api/agents/secretive', { status: 'paused' });
    await b.delete('/api/agents/secretive');

    expect((await a.get(`/api/jobs/${jobId}`)).body).toEqual(job.body);
    expect((await a.get('/api/agents/secretive')).body).toEqual(agent.body);
    expect((await a.get('/api/jobs')).body.total).toBe(1);
  });

  test('a job that runs cannot be cancelled or followed from outside', async () => {
    const { a, b } = await twoOrganizations();
    const end = gate();
    const jobId = await a.start(play, acting({ until: end.path }));
    await a.jobIn(jobId, 'active');

    expectRefusal(await b.post(`/api/jobs/${jobId}/cancel`), 404, 'not_found');
    const stream = await follow(`${platform.url}/api/jobs/${jobId}/events`, {
      'x-api-key': b.key,
    });
    expect(stream.status).toBe(404);

    end.open();
    expect((await a.jobIn(jobId, 'completed', 'cancelled')).body.status).toBe('completed');
  });
});

describe("lists and totals never contain another organization's", () => {
  test('without and with filters that match', async () => {
    const { b, conversationId } = await twoOrganizations();

    for (const query of [
      '',
      '?agent_id=secretive',
      '?status=failed',
      '?trigger_type=api',
      `?conversation_id=${conversationId}`,
      '?skill_category=staged',
    ]) {
      const { status, body } = await b.get(`/api/jobs${query}`);
      expect(status).toBe(200);
      expect(body).toEqual({ data: [], total: 0, limit: 50, offset: 0 });
    }
    for (const query of ['', '?agent_id=secretive', '?status=failed', '?user_id=a%20test']) {
      const { body, headers } = await b.get(`/api/conversations${query}`);
      expect(body).toEqual([]);
      expect(headers.get('x-total-count')).toBe('0');
    }
    const { body } = await b.get('/api/agents');
    expect(body.data.map((agent: { id: string }) => agent.id)).toEqual(['default']);
    expect(body.total).toBe(1);
  });
});

describe('resources of an organization are private', () => {
  test('an agent of another cannot be given work', async () => {
    const { b } = await twoOrganizations();

    const answer = await b.post(`/api/${play}`, acting(), { 'x-agent-id': 'secretive' });

    expectRefusal(answer, 404, 'not_found');
    expect((await b.get('/api/jobs')).body.total).toBe(0);
  });

  test('two organizations may have agents of the same id, and pausing one leaves the other', async () => {
    const { a, b } = await twoOrganizations();
    await b.post('/api/agents', { id: 'secretive', name: 'Other' });

    await b.put('/api/agents/secretive', { status: 'paused' });

    expect((await a.get('/api/agents/secretive')).body).toMatchObject({
      name: 'secretive',
      status: 'active',
    });
    const answer = await a.post(`/api/${play}`, acting(), { 'x-agent-id': 'secretive' });
    expect(answer.status).toBe(202);
  });

  test('two keys may use the same Idempotency-Key, also within one organization', async () => {
    const { a, b } = await twoOrganizations();
    const again = await newTenant(platform, { organization_id: a.organization });
    const headers = { 'idempotency-key': 'one' };

    const ids = [
      await a.start(play, acting(), headers),
      await b.start(play, acting(), headers),
      await again.start(play, acting(), headers),
    ];

    expect(new Set(ids).size).toBe(3);
  });

  test('all keys of an organization see the same', async () => {
    const { a, jobId } = await twoOrganizations();
    const again = await newTenant(platform, { organization_id: a.organization });

    expect((await again.get(`/api/jobs/${jobId}`)).status).toBe(200);
    expect((await again.get('/api/agents/secretive')).status).toBe(200);
  });

  test('skills are shared by all', async () => {
    const { a, b } = await twoOrganizations();

    expect((await a.get('/api/skills')).body).toEqual((await b.get('/api/skills')).body);
  });
});
