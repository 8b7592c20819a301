import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../src/kernel/ids.ts';
import { approvalWaits } from '../../src/platform/approvals/approval-waits.ts';
import { consoleFilesAt } from '../support/console-files.ts';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { hostileLimits, hostileOffsets } from '../support/hostile-pages.ts';
import { adminSecret, type Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  const files = mkdtempSync(join(tmpdir(), 'skillwright-console-'));
  platform = await startStaged({ parts: { consoleFiles: consoleFilesAt(files) } });
});
afterAll(() => platform.stop());

const path = '/api/approvals';
const day = 24 * 60 * 60 * 1000;
const question = { title: 'Ship order 7?', details: { total: 129 }, timeoutMs: 7 * day };

/** A question of a waiting step, as a run leaves it on record; its path and its fields. */
async function asked(tenant: Tenant, payload: object = {}) {
  const { id, conversation } = { id: newId(), conversation: newId() };
  const now = Date.now();
  const job = {
    id,
    epoch: 1,
    organization_id: tenant.organization,
    agent_id: 'default',
    conversation_id: conversation,
  } as Parameters<typeof approvalWaits.read>[1];
  const wait = approvalWaits.read({ ...question, ...payload }, job, now);
  await platform.database.write(async (tx) => {
    await tx.insert('job_steps', [
      {
        ...{ job_id: id, n: 1, epoch: 1, generation: 'ship', parent: null, turn: 1 },
        ...{ kind: 'approval', name: 'ship', call_id: null, status: 'waiting', error: null },
        ...{ message_id: null, memory: null, result: null, prompt_tokens: null },
        ...{ completion_tokens: null, started_at: now, due_at: wait.dueAt, finished_at: null },
      },
    ]);
    await approvalWaits.begin(tx, { job, n: 1, name: 'ship', ...wait }, now);
  });
  const { body } = await tenant.get(`${path}?job_id=${id}`);
  const [approval] = body.data;
  return { approval, at: `${path}/${approval.approval_id}` };
}

/** The headers of a session in the console, for the organization. */
async function signedIn(secret: string, organization: string) {
  const marked = { 'x-skillwright-console': '1', 'x-skillwright-organization': organization };
  const answer = await platform.request('POST', '/console/session', { body: { secret } });
  const cookie = (answer.headers.get('set-cookie') ?? '').split(';', 1)[0] as string;
  return { ...marked, cookie };
}

describe('GET /api/approvals', () => {
  test('lists the approvals of the organization, newest first', async () => {
    const tenant = await newTenant(platform);
    await asked(await newTenant(platform));
    const first = await asked(tenant);
    const second = await asked(tenant, { title: 'And this?', details: {} });

    const { status, body } = await tenant.get(path);

    expect(status).toBe(200);
    expect(body).toEqual({
      data: [second.approval, first.approval],
      total: 2,
      limit: 50,
      offset: 0,
    });
    expect(first.approval).toEqual({
      id: first.approval.approval_id,
      approval_id: anId,
      job_id: anId,
      agent_id: 'default',
      conversation_id: anId,
      user_id: null,
      step: 'ship',
      title: 'Ship order 7?',
      details: { total: 129 },
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      status: 'pending',
      requested_at: aTimestamp,
      expires_at: aTimestamp,
      decided_at: null,
      decided_by: null,
      reason: null,
      fields: null,
      link: null,
      answer: null,
    });
    expect((await tenant.get(first.at)).body).toEqual(first.approval);
  });

  test('is narrowed by status, job and agent', async () => {
    const tenant = await newTenant(platform);
    const { approval, at } = await asked(tenant);
    await asked(tenant);
    await tenant.post(`${at}/approve`);
    const totalOf = async (query: string) => (await tenant.get(`${path}?${query}`)).body.total;

    expect(await totalOf('status=pending')).toBe(1);
    expect(await totalOf('status=approved')).toBe(1);
    expect(await totalOf('status=rejected')).toBe(0);
    expect(await totalOf(`job_id=${approval.job_id}`)).toBe(1);
    expect(await totalOf('agent_id=default')).toBe(2);
    expect(await totalOf('agent_id=another')).toBe(0);
    expectInvalid(await tenant.get(`${path}?status=open`), 'status');
    expectInvalid(await tenant.get(`${path}?step=ship`), 'step');
  });

  test.each([...hostileLimits, ...hostileOffsets, 'limit=201'])('refuses ?%s', async (query) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get(`${path}?${query}`), query.split(/[=[]/)[0] as string);
  });
});

describe('an approval with fields', () => {
  const fields = {
    type: 'object',
    properties: {
      carrier: { type: 'string', title: 'Carrier', enum: ['post', 'rail'] },
      weight: { type: 'number', minimum: 0 },
    },
    required: ['carrier'],
  };

  test('is approved with an answer that fits them', async () => {
    const tenant = await newTenant(platform);
    const { approval, at } = await asked(tenant, { fields });
    expect(approval).toMatchObject({ fields, answer: null });

    expectInvalid(await tenant.post(`${at}/approve`), 'answer.carrier');
    expectInvalid(
      await tenant.post(`${at}/approve`, { answer: { carrier: 'air' } }),
      'answer.carrier',
    );
    const light = { carrier: 'post', weight: -1 };
    expectInvalid(await tenant.post(`${at}/approve`, { answer: light }), 'answer.weight');
    const other = { carrier: 'post', other: 1 };
    expectInvalid(await tenant.post(`${at}/approve`, { answer: other }), 'answer.other');
    expectInvalid(await tenant.post(`${at}/approve`, { answer: 'post' }), 'answer');
    expect((await tenant.get(at)).body).toEqual(approval);

    const answer = { carrier: 'rail', weight: 3 };
    const { body } = await tenant.post(`${at}/approve`, { answer, reason: 'Cheaper' });
    expect(body).toMatchObject({ status: 'approved', answer, reason: 'Cheaper' });
  });

  test('is rejected without an answer', async () => {
    const tenant = await newTenant(platform);
    const { at } = await asked(tenant, { fields });

    expectInvalid(await tenant.post(`${at}/reject`, { answer: { carrier: 'post' } }), 'answer');
    const { body } = await tenant.post(`${at}/reject`);
    expect(body).toMatchObject({ status: 'rejected', answer: null });
  });

  test('an answer to one without fields is refused', async () => {
    const tenant = await newTenant(platform);
    const { at } = await asked(tenant);

    expectInvalid(await tenant.post(`${at}/approve`, { answer: {} }), 'answer');
  });
});

describe.each([
  ['approve', 'approved'],
  ['reject', 'rejected'],
])('POST /api/approvals/:approvalId/%s', (verb, status) => {
  test('decides it in the name of the key, with a reason', async () => {
    const tenant = await newTenant(platform);
    const { approval, at } = await asked(tenant);

    const answer = await tenant.post(`${at}/${verb}`, { reason: 'Checked with Ada 🍵' });

    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      ...approval,
      status,
      decided_at: aTimestamp,
      decided_by: { kind: 'api_key', id: tenant.keyId, name: 'a test' },
      reason: 'Checked with Ada 🍵',
    });
    expect((await tenant.get(at)).body).toEqual(answer.body);
  });

  test('needs no reason and no body', async () => {
    const tenant = await newTenant(platform);
    const { at } = await asked(tenant);
    const other = await asked(tenant);

    expect((await tenant.post(`${at}/${verb}`)).body).toMatchObject({ status, reason: null });
    expect((await tenant.post(`${other.at}/${verb}`, {})).body).toMatchObject({ status });
  });

  test('a second decision is 409, and says who decided and when', async () => {
    const tenant = await newTenant(platform);
    const { at } = await asked(tenant);
    const { body: decided } = await tenant.post(`${at}/${verb}`);

    for (const again of ['approve', 'reject']) {
      const answer = await tenant.post(`${at}/${again}`, { reason: 'No, wait' });

      expectRefusal(answer, 409, 'conflict');
      expect(answer.body.message).toContain(`${status} at ${decided.decided_at}`);
      expect(answer.body.message).toContain(tenant.keyId);
    }
    expect((await tenant.get(at)).body).toEqual(decided);
  });

  test('an expired one is 409, and says so', async () => {
    const tenant = await newTenant(platform);
    const { approval, at } = await asked(tenant, { timeoutMs: 0 });

    const answer = await tenant.post(`${at}/${verb}`);

    expectRefusal(answer, 409, 'conflict');
    expect(answer.body.message).toBe(`This expired at ${approval.expires_at}`);
  });

  test('a reason of a wrong type or size, and any other field, is refused and named', async () => {
    const tenant = await newTenant(platform);
    const { approval, at } = await asked(tenant);

    for (const reason of [1, null, [], {}, true, '🏔'.repeat(2_001)]) {
      expectInvalid(await tenant.post(`${at}/${verb}`, { reason }), 'reason');
    }
    expectInvalid(await tenant.post(`${at}/${verb}`, { comment: 'x' }), 'comment');
    expectRefusal(await tenant.post(`${at}/${verb}`, [1]), 400, 'validation_error');
    expect((await tenant.get(at)).body).toEqual(approval);
    const reason = '🏔'.repeat(2_000);
    expect((await tenant.post(`${at}/${verb}`, { reason })).body.reason).toBe(reason);
  });

  test('in a session of the console it is decided in the name of the console', async () => {
    const tenant = await newTenant(platform);
    const { at } = await asked(tenant);
    const other = await asked(tenant);
    const asAdministrator = await signedIn(adminSecret, tenant.organization);
    const withKey = await signedIn(tenant.key, tenant.organization);
    const post = (to: string, headers: Record<string, string>) =>
      platform.request('POST', `${to}/${verb}`, { headers, body: {} });

    const first = await post(at, asAdministrator);
    const second = await post(other.at, withKey);

    const third = await asked(tenant);
    const again = await post(third.at, withKey);

    const deciders = { kind: 'console', id: anId, api_key_id: anId };
    expect(first.body.decided_by).toEqual({ ...deciders, name: 'Administrator' });
    for (const { body } of [second, again]) {
      expect(body.decided_by).toEqual({ ...deciders, name: 'a test' });
    }
    const holders = [first, second, again].map(({ body }) => body.decided_by.api_key_id);
    expect(holders.slice(1)).toEqual([tenant.keyId, tenant.keyId]);
    expect(holders[0]).not.toBe(tenant.keyId);
    const ids = [first, second, again].map(({ body }) => body.decided_by.id);
    expect(ids[1]).toBe(ids[2]);
    expect(new Set([...ids, tenant.keyId]).size).toBe(3);
    const refused = await post(at, withKey);
    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.message).toContain(
      `by “Administrator” in the session of the console ${ids[0]}`,
    );
  });

  test("another organization's approval, and an unknown one, are not found", async () => {
    const { at, approval } = await asked(await newTenant(platform));
    const tenant = await newTenant(platform);

    for (const one of [at, `${path}/${newId()}`, `${path}/x`]) {
      expectRefusal(await tenant.get(one), 404, 'not_found');
      expectRefusal(await tenant.post(`${one}/${verb}`, { nonsense: true }), 404, 'not_found');
    }
    expect(approval.status).toBe('pending');
  });

  test('a key without the scope approvals can neither read nor decide', async () => {
    const tenant = await newTenant(platform);
    const { organization: organization_id } = tenant;
    const { at, approval } = await asked(tenant);
    const other = await newTenant(platform, { organization_id, scopes: ['web', 'text'] });
    const approver = await newTenant(platform, { organization_id, scopes: ['approvals'] });

    for (const answer of [
      await other.get(path),
      await other.get(at),
      await other.post(`${at}/${verb}`, { nonsense: true }),
    ]) {
      expectRefusal(answer, 403, 'insufficient_scope');
      expect(answer.body.message).toContain('approvals');
    }
    for (const one of [`${path}/${newId()}`, `${path}/x`]) {
      expectRefusal(await other.get(one), 404, 'not_found');
      expectRefusal(await other.post(`${one}/${verb}`), 404, 'not_found');
    }
    expect((await approver.get(path)).body.data).toEqual([approval]);
    expect((await approver.post(`${at}/${verb}`)).body.decided_by.id).toBe(approver.keyId);
  });
});
