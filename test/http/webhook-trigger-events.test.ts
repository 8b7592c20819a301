/** Triggers whose calls become events for runs that wait (docs/triggers.md). */
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anId, expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Answer, Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const triggers = '/api/agent-triggers';
const paid = { name: 'order.paid', key_mapping: 'body.order' };

const fieldsOf = (more: object = {}) => ({
  agent_id: 'default',
  name: 'Payments',
  event: paid,
  ...more,
});

/** A trigger of events in an organization of its own, with one run that has not ended: events are stored for it. */
async function newTrigger(more: object = {}, key: Record<string, unknown> = {}) {
  const tenant = await newTenant(platform, key);
  const created = await tenant.post(triggers, fieldsOf(more));
  if (created.status !== 201) throw new Error(`No trigger: ${created.text}`);
  const { id, token } = created.body;
  const other = await newTenant(platform, { organization_id: tenant.organization });
  await other.start('staged/v1.0/listener', { acts: [{ wait: { event: 'never' } }] });
  return {
    tenant,
    at: `${triggers}/${id}`,
    created: created.body,
    call: (body?: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
      platform.request('POST', `/api/webhooks/agent/${token}`, { body, headers }),
  };
}

const storedOf = async ({ organization }: Tenant) => {
  const rows = await platform.database.read.kysely
    .selectFrom('received_events')
    .select(['id', 'event', 'key', 'data'])
    .where('organization_id', '=', organization)
    .orderBy('id')
    .execute();
  return rows.map(({ data, ...row }) => ({ ...row, data: JSON.parse(data) }));
};

describe('a trigger with an event', () => {
  test('shows it, and becomes a trigger of runs without it', async () => {
    const { tenant, at, created, call } = await newTrigger({
      skill_category: 'util',
      skill_name: 'echo',
    });

    const off = await tenant.put(at, { event: null });
    const run = await call({ text: 'x' });
    const on = await tenant.put(at, { event: { name: 'order.refunded' } });

    expect(created.event).toEqual(paid);
    expect(off.body.event).toBeNull();
    expect(run.body).toMatchObject({ job_id: anId });
    expect(on.body.event).toEqual({ name: 'order.refunded', key_mapping: null });
    expect((await tenant.get(`${at}?include=refusal`)).body.refusal).toBeNull();
  });

  test('makes an event of a call, and starts no run', async () => {
    const { tenant, call } = await newTrigger({ mapping: '{"amount": body.amount}' });

    const { status, body, headers } = await call({ order: 'A-17', amount: 40, secret: 'x' });

    expect(status).toBe(202);
    expect(body).toEqual({ event_id: anId, delivered: 0 });
    expect(headers.get('location')).toBeNull();
    expect(await storedOf(tenant)).toEqual([
      { id: body.event_id, event: 'order.paid', key: 'A-17', data: { amount: 40 } },
    ]);
    expect((await tenant.get('/api/jobs?trigger_type=webhook')).body.total).toBe(0);
  });

  test.each([
    ['the body', {}, '[1,"x"]', [1, 'x']],
    ['the body over its input', { input: { a: 1, b: 2 } }, '{"b":3}', { a: 1, b: 3 }],
    ['any value of the mapping', { mapping: 'body.n + 1' }, '{"n":1}', 2],
  ])('has as data %s', async (_, more, body, data) => {
    const { tenant, call } = await newTrigger({ event: { name: 'e' }, ...more });

    expect((await call(body, { 'content-type': 'application/json' })).status).toBe(202);
    expect(await storedOf(tenant)).toMatchObject([{ event: 'e', key: '', data }]);
  });

  test('takes a number as key, and refuses a call without one', async () => {
    const { tenant, call } = await newTrigger();

    expect((await call({ order: 17 })).status).toBe(202);
    for (const order of [undefined, null, '', {}, [], true, 'x'.repeat(501)]) {
      expectInvalid(await call({ order }), 'event.key_mapping');
    }
    expect(await storedOf(tenant)).toMatchObject([{ key: '17' }]);
  });

  test('refuses data that is too large, and what its input cannot be merged with', async () => {
    const { call } = await newTrigger({ input: { a: 1 }, mapping: 'body.data' });

    expectInvalid(await call({ order: 1, data: { x: 'x'.repeat(262_144) } }), 'data');
    expectInvalid(await call({ order: 1, data: 7 }), 'mapping');
    expectInvalid(await call({ order: 1 }), 'mapping');
  });

  test('makes one event of repeats, though their mapping gives something else', async () => {
    const { tenant, call } = await newTrigger({ mapping: '{"at": $millis()}' });
    const once = { 'x-github-delivery': 'd1' };

    const first = await call({ order: 'a' }, once);
    const again = await call({ order: 'a' }, once);
    const other = await call({ order: 'b' }, once);

    expect(again.body).toEqual(first.body);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expectRefusal(other, 422, 'idempotency_key_reused');
    expect(await storedOf(tenant)).toHaveLength(1);
  });

  test('is called only with a signature, where it has a secret', async () => {
    const secret = 'a secret of enough characters';
    const { tenant, call } = await newTrigger({ signing_secret: secret });
    const body = '{"order":"a"}';
    const json = { 'content-type': 'application/json' };
    const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

    expectRefusal(await call(body, json), 401, 'invalid_signature');
    const signed = await call(body, { ...json, 'x-hub-signature-256': signature });

    expect(signed.status).toBe(202);
    expect(await storedOf(tenant)).toHaveLength(1);
  });

  test('lists the event with the call', async () => {
    const { tenant, at, call } = await newTrigger();
    const { body } = await call({ order: 'a' });

    const calls = await waitFor(
      async () => {
        const { body: page } = await tenant.get(`${at}/calls`);
        return page.data.length === 0 ? null : page.data;
      },
      { describe: 'the call is listed' },
    );

    expect(calls).toMatchObject([{ status: 202, job_id: null, event_id: body.event_id }]);
  });

  test('sends events of the organization of its key', async () => {
    const { tenant, call } = await newTrigger();
    const stranger = await newTenant(platform);

    await call({ order: 'a' });

    expect(await storedOf(tenant)).toHaveLength(1);
    expect(await storedOf(stranger)).toEqual([]);
  });

  test('is not found once its key is revoked, and says why to its owner', async () => {
    const { tenant, at, call } = await newTrigger();
    const other = await newTenant(platform, { organization_id: tenant.organization });
    await platform.admin('DELETE', `/admin/api-keys/${tenant.keyId}`);

    const refusals = await waitFor(
      async () => {
        const answer = await call({ order: 'a' });
        return answer.status === 404 ? answer : null;
      },
      { describe: 'the trigger knows that its key is revoked' },
    );

    expectRefusal(refusals, 404, 'not_found');
    const { body } = await other.get(`${at}?include=refusal`);
    expect(body.refusal).toMatchObject({ code: 'invalid_api_key' });
  });

  test('works while its agent is paused', async () => {
    const { tenant, call } = await newTrigger();
    await tenant.put('/api/agents/default', { status: 'paused' });

    expect((await call({ order: 'a' })).status).toBe(202);
  });
});

describe('its fields', () => {
  const wrong: [string, object][] = [
    ['event.name', { event: { name: 'a b' } }],
    ['event.name', { event: { name: '' } }],
    ['event.name', { event: {} }],
    ['event.key_mapping', { event: { name: 'a', key_mapping: '' } }],
    ['event.key_mapping', { event: { name: 'a', key_mapping: 'body.(' } }],
    ['event.key_mapping', { event: { name: 'a', key_mapping: `"${'ü'.repeat(5_000)}"` } }],
    ['event.nonsense', { event: { name: 'a', nonsense: 1 } }],
    ['mapping', { mapping: 'body.(' }],
  ];
  test.each(wrong)('an invalid %s is refused: %j', async (field, more) => {
    const tenant = await newTenant(platform);
    const { tenant: owner, at } = await newTrigger();

    expectInvalid(await tenant.post(triggers, fieldsOf(more)), field);
    expectInvalid(await owner.put(at, more), field);
  });

  test('need the scope events, of the caller, whose key the trigger has from then on', async () => {
    const without = await newTenant(platform, { scopes: ['util'] });
    const echo = { skill_category: 'util', skill_name: 'echo' };
    expectRefusal(await without.post(triggers, fieldsOf()), 403, 'insufficient_scope');
    const { body: made } = await without.post(triggers, fieldsOf({ event: null, ...echo }));
    const all = await newTenant(platform, { organization_id: without.organization });
    const at = `${triggers}/${made.id}`;

    expectRefusal(await without.put(at, { event: paid }), 403, 'insufficient_scope');
    expect(await all.put(at, { event: paid })).toMatchObject({
      status: 200,
      body: { event: paid },
    });
    const only = await newTenant(platform, { scopes: ['events'] });
    const { status, body } = await only.post(triggers, fieldsOf(echo));

    expect(status).toBe(201);
    expectRefusal(
      await only.put(`${triggers}/${body.id}`, { event: null }),
      403,
      'insufficient_scope',
    );
  });
});
