import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anId, expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const path = '/api/events';
const kibibytes256 = 262_144;

/** A tenant with a run that has not ended, which events are stored for. */
async function waitingTenant(): Promise<Tenant> {
  const tenant = await newTenant(platform);
  await tenant.start('staged/v1.0/listener', { acts: [{ wait: { event: 'never' } }] });
  return tenant;
}

/** The events that are stored for an organization, oldest first. */
function storedOf({ organization }: Tenant) {
  return platform.database.read.kysely
    .selectFrom('received_events')
    .select(['id', 'event', 'key', 'job_id', 'data'])
    .where('organization_id', '=', organization)
    .orderBy('id')
    .execute();
}

describe('POST /api/events', () => {
  test('answers 202 with the event, and stores it for runs that wait later', async () => {
    const tenant = await waitingTenant();

    const { status, body, headers } = await tenant.post(path, {
      event: 'order.paid',
      key: 'order 1042 🏔',
      data: { amount: 4990, nested: [null, true] },
    });

    expect(status).toBe(202);
    expect(body).toEqual({ event_id: anId, delivered: 0 });
    expect(headers.get('idempotent-replayed')).toBeNull();
    expect(await storedOf(tenant)).toEqual([
      {
        id: body.event_id,
        event: 'order.paid',
        key: 'order 1042 🏔',
        job_id: null,
        data: '{"amount":4990,"nested":[null,true]}',
      },
    ]);
  });

  test('key, job and data may be left out or be null', async () => {
    const tenant = await waitingTenant();

    const short = await tenant.post(path, { event: 'a' });
    const long = await tenant.post(path, { event: 'a', key: null, job_id: null, data: null });

    expect([short.status, long.status]).toEqual([202, 202]);
    const same = { event: 'a', key: '', job_id: null, data: 'null' };
    expect(await storedOf(tenant)).toMatchObject([same, same]);
  });

  test('events are numbered in the order in which they are answered', async () => {
    const tenant = await newTenant(platform);
    const ids: string[] = [];

    for (let i = 0; i < 5; i += 1) {
      ids.push((await tenant.post(path, { event: 'tick' })).body.event_id);
    }

    expect(ids).toEqual(ids.toSorted());
  });

  const wrong: [string, unknown[]][] = [
    ['event', ['', 'a b', 'ü', 'a\n', 'x'.repeat(201), 1, null, {}, ['a']]],
    ['key', ['', 'x'.repeat(501), 1, {}, ['a'], true]],
    ['job_id', ['', 1, {}]],
    ['data', ['x'.repeat(kibibytes256 - 1), ['🏔'.repeat(65_536)]]],
  ];
  test.each(wrong)('refuses an invalid %s', async (field, values) => {
    const tenant = await newTenant(platform);

    for (const value of values) {
      expectInvalid(await tenant.post(path, { event: 'a', [field]: value }), field);
    }
    expect(await storedOf(tenant)).toEqual([]);
  });

  test('takes names, keys and data of exactly their bounds', async () => {
    const tenant = await newTenant(platform);

    for (const body of [
      { event: 'aZ09._-:/'.repeat(20) },
      { event: 'x'.repeat(200), key: '🏔'.repeat(500) },
      { event: 'a', data: 'x'.repeat(kibibytes256 - 2) },
    ]) {
      expect((await tenant.post(path, body)).status).toBe(202);
    }
  });

  test('refuses unknown fields and bodies that are no object', async () => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.post(path, { event: 'a', evnet: 'b' }), 'evnet');
    expectInvalid(await tenant.post(path, {}), 'event');
    for (const body of [
      '[]',
      '"a"',
      'null',
      '1',
      '{',
      '',
      '{"__proto__":{}}',
      '{"event":"\\u0000"}',
    ]) {
      expectRefusal(await tenant.post(path, body), 400, 'validation_error');
    }
    expect(await storedOf(tenant)).toEqual([]);
  });

  test('refuses what is not JSON, and bodies above 1 MiB', async () => {
    const tenant = await newTenant(platform);
    const headers = { 'content-type': 'text/plain' };

    expectRefusal(await tenant.post(path, 'hello', headers), 415, 'unsupported_media_type');
    const huge = { event: 'a', data: 'x'.repeat(1_048_576) };
    expectRefusal(await tenant.post(path, huge), 413, 'payload_too_large');
  });

  test('needs a key', async () => {
    const { status, body } = await platform.request('POST', path, { body: { event: 'a' } });

    expect([status, body.error]).toEqual([401, 'authentication_required']);
  });

  test('needs the scope events, which is checked before the body', async () => {
    const tenant = await newTenant(platform, { scopes: ['util', 'staged'] });
    const allowed = await newTenant(platform, { scopes: ['events'] });

    expectRefusal(await tenant.post(path, { event: 'a' }), 403, 'insufficient_scope');
    expectRefusal(await tenant.post(path, { nonsense: 1 }), 403, 'insufficient_scope');
    expect((await allowed.post(path, { event: 'a' })).status).toBe(202);
  });

  test('a job that is unknown, malformed or of another organization is not found', async () => {
    const tenant = await newTenant(platform);
    const stranger = await newTenant(platform);
    const theirs = await stranger.start('util/v1.0/echo', { text: 'x' });

    for (const job_id of [theirs, '0191f3b0-0000-7000-8000-000000000000', 'nonsense', '../x']) {
      expectRefusal(await tenant.post(path, { event: 'a', job_id }), 404, 'not_found');
    }
    expect(await storedOf(tenant)).toEqual([]);
  });

  test('a job that has ended takes no more events', async () => {
    const tenant = await newTenant(platform);
    const job_id = await tenant.start('util/v1.0/echo', { text: 'x' });
    await tenant.jobIn(job_id, 'completed');

    expectRefusal(await tenant.post(path, { event: 'a', job_id }), 409, 'conflict');
    expect(await storedOf(tenant)).toEqual([]);
  });

  test('other methods and paths below it are refused', async () => {
    const tenant = await newTenant(platform);

    expectRefusal(await tenant.get(path), 405, 'method_not_allowed');
    expectRefusal(await tenant.post(`${path}/v1.0/echo`, {}), 404, 'not_found');
  });
});

test('an event that no job is old enough to take is answered and not stored', async () => {
  const tenant = await newTenant(platform);
  await tenant.jobIn(await tenant.start('util/v1.0/echo', { text: 'x' }), 'completed');

  const { status, body } = await tenant.post(path, { event: 'a' });

  expect([status, body]).toEqual([202, { event_id: anId, delivered: 0 }]);
  expect(await storedOf(tenant)).toEqual([]);
});

describe('an Idempotency-Key', () => {
  const once = { 'idempotency-key': 'payment-1' };

  test('makes repeats of a request one event', async () => {
    const tenant = await waitingTenant();
    const sent = { event: 'order.paid', key: '1', data: { b: 1, a: 2 } };

    const first = await tenant.post(path, sent, once);
    const again = await tenant.post(path, { ...sent, data: { a: 2, b: 1 }, job_id: null }, once);

    expect(again.status).toBe(202);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await storedOf(tenant)).toHaveLength(1);
  });

  test('makes requests at the same time one event', async () => {
    const tenant = await waitingTenant();

    const answers = await Promise.all(
      Array.from({ length: 10 }, () => tenant.post(path, { event: 'a' }, once)),
    );

    expect(new Set(answers.map(({ body }) => body.event_id)).size).toBe(1);
    expect(await storedOf(tenant)).toHaveLength(1);
  });

  test('of another request is refused', async () => {
    const tenant = await waitingTenant();
    await tenant.post(path, { event: 'a', data: 1 }, once);

    for (const other of [
      { event: 'b', data: 1 },
      { event: 'a', data: 2 },
      { event: 'a', key: 'x', data: 1 },
    ]) {
      expectRefusal(await tenant.post(path, other, once), 422, 'idempotency_key_reused');
    }
    expect(await storedOf(tenant)).toHaveLength(1);
  });

  test('is not taken by a request that is refused', async () => {
    const tenant = await newTenant(platform);
    const unknown = '0191f3b0-0000-7000-8000-000000000000';
    await tenant.post(path, { event: 'a', job_id: unknown }, once);

    expect((await tenant.post(path, { event: 'a' }, once)).status).toBe(202);
  });

  test('belongs to its API key', async () => {
    const tenant = await waitingTenant();
    const other = await newTenant(platform, { organization_id: tenant.organization });

    await tenant.post(path, { event: 'a' }, once);
    const { headers } = await other.post(path, { event: 'b' }, once);

    expect(headers.get('idempotent-replayed')).toBeNull();
    expect(await storedOf(tenant)).toHaveLength(2);
  });

  test('has 1 to 255 characters', async () => {
    const tenant = await newTenant(platform);

    for (const key of ['', 'x'.repeat(256)]) {
      const answer = await tenant.post(path, { event: 'a' }, { 'idempotency-key': key });
      expectInvalid(answer, 'idempotency-key');
    }
  });
});

describe('events that no run takes', () => {
  test('are 1,000 at most with one name and key; the next is 409 conflict', async () => {
    const tenant = await waitingTenant();
    const { body } = await tenant.post(path, { event: 'a', key: 'k' });
    const [event] = await platform.database.read.kysely
      .selectFrom('received_events')
      .selectAll()
      .where('id', '=', body.event_id)
      .execute();
    if (event === undefined) throw new Error('It is not stored.');
    const copies = Array.from({ length: 999 }, (_, i) => ({
      ...event,
      id: `${event.id.slice(0, -6)}${String(i).padStart(6, '0')}`,
    }));
    await platform.database.write((tx) => tx.insert('received_events', copies));
    const once = { 'idempotency-key': 'one too many' };

    const refused = await tenant.post(path, { event: 'a', key: 'k' }, once);

    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.message).toMatch(/1,000 events a with this key/);
    expectRefusal(await tenant.post(path, { event: 'a', key: 'k' }, once), 409, 'conflict');
    expect((await tenant.post(path, { event: 'a' }, once)).status).toBe(202);
    expect((await tenant.post(path, { event: 'a', key: 'other' })).status).toBe(202);
  });
});
