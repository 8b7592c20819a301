import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anId, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Platform } from '../support/platform.ts';
import { dataDirectory, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

const secret = 'a secret of enough characters';
const hub = (body: string) => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

async function newTrigger(tenant: Tenant, fields: Record<string, unknown> = {}) {
  const created = await tenant.post('/api/agent-triggers', {
    agent_id: 'default',
    name: 'Pushes',
    skill_category: 'staged',
    skill_name: 'any',
    ...fields,
  });
  if (created.status !== 201) throw new Error(`No trigger: ${created.text}`);
  const { id, token } = created.body;
  return { id, at: `/api/agent-triggers/${id}`, address: `/api/webhooks/agent/${token}` };
}

const call = (address: string, body: unknown = {}, headers: Record<string, string> = {}) =>
  platform.request('POST', address, { body, headers });

/** The calls of a trigger, once there are so many. */
function callsOnce(tenant: Tenant, { at }: { at: string }, total: number, query = '') {
  let last: unknown;
  return waitFor(
    async () => {
      const { body } = await tenant.get(`${at}/calls${query}`);
      last = body;
      return body.total === total ? body : null;
    },
    { describe: () => `${total} calls; there is ${JSON.stringify(last)}` },
  );
}

describe('GET /api/agent-triggers/:triggerId/calls', () => {
  test('shows each call with its response, newest first', async () => {
    const tenant = await newTenant(platform);
    const trigger = await newTrigger(tenant, { signing_secret: secret });
    const body = JSON.stringify({ text: 'größer' });
    const named = { 'x-hub-signature-256': hub(body), 'idempotency-key': 'one' };
    const accepted = await call(trigger.address, body, named);
    const receivedAt = new Date(clock.now()).toISOString();
    clock.advance(1_000);
    await call(trigger.address, body, named);
    await call(trigger.address, body);

    const found = await callsOnce(tenant, trigger, 3);

    const common = {
      id: anId,
      event_id: null,
      duration_ms: expect.any(Number),
      body_bytes: Buffer.byteLength(body),
    };
    const { job_id } = accepted.body;
    const fine = { ...common, status: 202, error: null, message: null, job_id };
    const later = new Date(clock.now()).toISOString();
    expect(found).toEqual({
      data: [
        {
          ...common,
          received_at: later,
          status: 401,
          error: 'invalid_signature',
          message: expect.stringMatching(/\S/),
          job_id: null,
          replayed: false,
        },
        { ...fine, received_at: later, replayed: true },
        { ...fine, received_at: receivedAt, replayed: false },
      ],
      total: 3,
      limit: 50,
      offset: 0,
    });
    for (const one of found.data) expect(one.duration_ms).toBeGreaterThanOrEqual(0);
  });

  test('shows refused calls with the code and message of the response', async () => {
    const tenant = await newTenant(platform);
    const trigger = await newTrigger(tenant, { rate_limit: 4, mapping: '{"a": $error("no")}' });
    const answers = [await call(trigger.address), await call(trigger.address, '{')];
    answers.push(
      await call(trigger.address, 'x'.repeat(1_100_000), { 'content-type': 'text/plain' }),
    );
    await tenant.put(trigger.at, { mapping: null });
    await tenant.put('/api/agents/default', { status: 'paused' });
    answers.push(await call(trigger.address));
    answers.push(await call(trigger.address));

    const { data } = await callsOnce(tenant, trigger, 5);

    const statuses = [400, 400, 413, 422, 429];
    expect(answers.map(({ status }) => status)).toEqual(statuses);
    expect(data.map((one: { body_bytes: number }) => one.body_bytes)).toEqual([
      null,
      2,
      null,
      1,
      2,
    ]);
    expect(data.toReversed()).toMatchObject(
      answers.map(({ status, body }) => ({
        status,
        error: body.error,
        message: body.message,
        job_id: null,
      })),
    );
  });

  test('shows the owner the reason of a 404 that the sender does not get', async () => {
    const tenant = await newTenant(platform, { scopes: ['staged'] });
    const owner = await newTenant(platform, { organization_id: tenant.organization });
    const trigger = await newTrigger(tenant);
    await tenant.put(trigger.at, { active: false });
    const off = await call(trigger.address);
    await tenant.put(trigger.at, { active: true });
    await platform.admin('DELETE', `/admin/api-keys/${tenant.keyId}`);
    clock.advance(2_000);
    const revoked = await call(trigger.address);

    const { data } = await callsOnce(owner, trigger, 2);

    for (const answer of [off, revoked]) {
      expectRefusal(answer, 404, 'not_found');
      expect(answer.body.message).toBe('Trigger not found');
    }
    const refused = { status: 404, error: 'not_found', body_bytes: null };
    expect(data).toMatchObject([
      { ...refused, message: 'Its key is revoked or expired' },
      { ...refused, message: 'The trigger is switched off' },
    ]);
  });

  test('a message with characters that no database can store is kept without them', async () => {
    const tenant = await newTenant(platform);
    const trigger = await newTrigger(tenant, {
      mapping: `$error("\\u0000 " & $join($map([1..2000], function($n) { "🔑" })))`,
    });
    await call(trigger.address);

    const { data } = await callsOnce(tenant, trigger, 1);

    expect(data[0]).toMatchObject({ status: 400, error: 'validation_error' });
    expect(data[0].message.length).toBeLessThanOrEqual(500);
  });

  test('comes in pages', async () => {
    const tenant = await newTenant(platform);
    const trigger = await newTrigger(tenant);
    for (let i = 0; i < 5; i++)
      await call(trigger.address, 'x'.repeat(i), { 'content-type': 'text/plain' });
    await callsOnce(tenant, trigger, 5);

    const { body } = await tenant.get(`${trigger.at}/calls?limit=2&offset=1`);

    expect(body).toMatchObject({ total: 5, limit: 2, offset: 1 });
    expect(body.data.map((one: { body_bytes: number }) => one.body_bytes)).toEqual([3, 2]);
    expectInvalid(await tenant.get(`${trigger.at}/calls?limit=0`), 'limit');
  });

  test('a trigger without calls has none, and calls with an unknown token are not kept', async () => {
    const tenant = await newTenant(platform);
    const [silent, heard] = [await newTrigger(tenant), await newTrigger(tenant)];
    await call('/api/webhooks/agent/trg_nobody');
    await call(heard.address);
    await callsOnce(tenant, heard, 1);

    const { body } = await tenant.get(`${silent.at}/calls`);

    expect(body).toEqual({ data: [], total: 0, limit: 50, offset: 0 });
  });

  test("another organization's trigger is 404 like one that does not exist", async () => {
    const [tenant, stranger] = [await newTenant(platform), await newTenant(platform)];
    const trigger = await newTrigger(tenant);
    await call(trigger.address);
    await callsOnce(tenant, trigger, 1);

    const theirs = await stranger.get(`${trigger.at}/calls`);

    expectRefusal(theirs, 404, 'not_found');
    for (const id of ['0198c0de-0000-7000-8000-000000000000', 'x']) {
      const nobodys = await stranger.get(`/api/agent-triggers/${id}/calls?limit=x`);
      expect(nobodys.text).toBe(theirs.text);
    }
  });

  test('the calls of a trigger go with it', async () => {
    const tenant = await newTenant(platform);
    const trigger = await newTrigger(tenant);
    await call(trigger.address);
    await callsOnce(tenant, trigger, 1);

    await tenant.delete(trigger.at);

    expectRefusal(await tenant.get(`${trigger.at}/calls`), 404, 'not_found');
    const rows = await platform.database.read.kysely
      .selectFrom('trigger_calls')
      .select('id')
      .where('trigger_id', '=', trigger.id)
      .execute();
    expect(rows).toEqual([]);
  });

  test('calls in memory when the platform stops are there after its restart', async () => {
    const dataDir = dataDirectory();
    const first = await startStaged({ environment: { DATA_DIR: dataDir } });
    const tenant = await newTenant(first);
    const trigger = await newTrigger(tenant);
    for (let i = 0; i < 10; i++) await first.request('POST', trigger.address, { body: {} });
    await first.stop();

    const second = await startStaged({ environment: { DATA_DIR: dataDir } });
    const answer = await second.request('GET', `${trigger.at}/calls`, { key: tenant.key });
    await second.stop();

    expect(answer.body.total).toBe(10);
  });
});
