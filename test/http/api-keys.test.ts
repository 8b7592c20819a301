import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { adminSecret, type Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newOrganization, newTenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const create = (fields: Record<string, unknown> = {}) =>
  platform.admin('POST', '/admin/api-keys', { client_name: 'me', scopes: ['text'], ...fields });

/** The key as the listing shows it. */
async function listed(id: string) {
  const { body } = await platform.admin('GET', '/admin/api-keys');
  return body.find((key: { id: string }) => key.id === id);
}

const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();

describe('POST /admin/api-keys', () => {
  test('answers 201 with the documented fields, the organization, and no others', async () => {
    const answer = await create({ client_name: 'nightly reports', scopes: ['text', 'web'] });

    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      id: anId,
      organization_id: 'default',
      client_name: 'nightly reports',
      scopes: ['text', 'web'],
      rate_limit: 100,
      enabled: true,
      plaintext_key: expect.stringMatching(/^sk_[A-Za-z0-9_-]{43}$/),
      created_at: aTimestamp,
    });
  });

  test('rate_limit is 100 requests per minute by default, and the given one otherwise', async () => {
    expect((await create()).body.rate_limit).toBe(100);
    expect((await create({ rate_limit: 1 })).body.rate_limit).toBe(1);
    expect((await create({ rate_limit: 1_000_000 })).body.rate_limit).toBe(1_000_000);
  });

  test('no two keys are alike', async () => {
    const keys = await Promise.all(Array.from({ length: 20 }, () => create()));

    expect(new Set(keys.map(({ body }) => body.plaintext_key)).size).toBe(20);
    expect(new Set(keys.map(({ body }) => body.id)).size).toBe(20);
  });

  test('an organization comes into being with its first key, with an active agent default', async () => {
    const organization_id = newOrganization();

    const tenant = await newTenant(platform, { organization_id });

    expect((await listed(tenant.keyId)).organization_id).toBe(organization_id);
    const { body } = await tenant.get('/api/agents');
    expect(body.data).toMatchObject([{ id: 'default', status: 'active' }]);
  });

  test('the second key of an organization leaves its agents alone', async () => {
    const first = await newTenant(platform);
    await first.delete('/api/agents/default');

    const second = await newTenant(platform, { organization_id: first.organization });

    expect((await second.get('/api/agents')).body.total).toBe(0);
  });

  test('50 first keys of one organization at once are all made', async () => {
    const organization_id = newOrganization();

    const keys = await Promise.all(Array.from({ length: 50 }, () => create({ organization_id })));

    expect(keys.map(({ status }) => status)).toEqual(Array(50).fill(201));
  });

  test.each([
    ['client_name', [undefined, null, '', 1, ['a'], {}, 'x'.repeat(201), 'x'.repeat(1_000_000)]],
    ['scopes', [undefined, null, [], 'text', {}, ['text', 'text'], ['*', 'text'], ['text', '*']]],
    ['scopes.0', [[''], [1], [null], ['Text'], ['a,b'], ['a*'], [' '], ['a'.repeat(64)], ['é']]],
    ['rate_limit', [0, -1, 1.5, '100', null, 2 ** 53, 1_000_001, true, [100]]],
    [
      'expires_at',
      [
        ...[null, 1_900_000_000, '', 'tomorrow', '2000-01-01T00:00:00Z', '2030-02-30T00:00:00Z'],
        ...['2030-13-01T00:00:00Z', '2030-01-01', '2030-01-01T00:00:00', '0000-01-01T00:00:00Z'],
        ...['+275760-09-13T00:00:00Z', '2030-01-01 00:00:00Z', '2030-01-01T24:00:01Z'],
      ],
    ],
    ['organization_id', [null, '', 1, 'Default', 'a b', 'a/b', '-a', 'a'.repeat(64), '../etc']],
  ])(
    '%s that is missing, of a wrong type or out of range is refused and named',
    async (field, values) => {
      for (const value of values) {
        const answer = await create({ [field.split('.')[0] as string]: value });

        // Absent, null and wrong are told apart in words only.
        expectInvalid(answer, field);
      }
    },
  );

  test('rate_limit may be no number beyond JSON: NaN and 1e400 are malformed', async () => {
    for (const number of ['NaN', '1e400', 'Infinity', '0x64']) {
      const body = `{"client_name":"me","scopes":["text"],"rate_limit":${number}}`;

      expectRefusal(await platform.admin('POST', '/admin/api-keys', body), 400, 'validation_error');
    }
  });

  test('200 scopes are taken, 201 and 10,001 are not', async () => {
    const scopes = (n: number) => Array.from({ length: n }, (_, i) => `c${i}`);

    expect((await create({ scopes: scopes(200) })).status).toBe(201);
    expectInvalid(await create({ scopes: scopes(201) }), 'scopes');
    expectInvalid(await create({ scopes: scopes(10_001) }), 'scopes');
  });

  test.each(['plaintext_key', 'id', 'enabled', 'created_at', 'key_hash', 'foo', 'constructor'])(
    'an unknown field is refused and named: %s',
    async (field) => {
      expectInvalid(await create({ [field]: 'x' }), field);
    },
  );

  test('a name of any 200 characters is accepted', async () => {
    for (const client_name of [
      'x',
      'x'.repeat(200),
      '🏔️'.repeat(100),
      'مرحبا',
      ' a\r\nx-evil: 1\tb',
    ]) {
      const { status, body } = await create({ client_name });

      expect({ status, name: body.client_name }).toEqual({ status: 201, name: client_name });
      expect((await listed(body.id)).client_name).toBe(client_name);
    }
    expectInvalid(await create({ client_name: '🏔'.repeat(201) }), 'client_name');
  });

  test('expires_at may be given in any zone and is shown in UTC', async () => {
    const expires_at = '2099-01-01T02:30:00+02:00';

    const { status, body } = await create({ expires_at });

    expect(status).toBe(201);
    expect((await listed(body.id)).expires_at).toBe('2099-01-01T00:30:00.000Z');
  });

  test('a body is needed, and it is an object', async () => {
    for (const body of ['', '[]', 'null', '"x"', '1', '{', '{"client_name":"me"']) {
      expectRefusal(await platform.admin('POST', '/admin/api-keys', body), 400, 'validation_error');
    }
    expectRefusal(await platform.admin('POST', '/admin/api-keys'), 400, 'validation_error');
  });
});

describe('GET /admin/api-keys', () => {
  test('lists every key with the documented fields, and no plaintext or hash', async () => {
    const expires_at = inAnHour();
    const { body: created } = await create({ client_name: 'a', expires_at });

    const answer = await platform.admin('GET', '/admin/api-keys');

    expect(answer.status).toBe(200);
    expect(await listed(created.id)).toEqual({
      id: created.id,
      organization_id: 'default',
      client_name: 'a',
      scopes: ['text'],
      rate_limit: 100,
      enabled: true,
      created_at: created.created_at,
      expires_at,
    });
    expect(answer.text).not.toContain(created.plaintext_key);
    // Not even a part that is longer than eight characters.
    expect(answer.text).not.toContain(created.plaintext_key.slice(0, 9));
    expect(answer.text).not.toContain(created.plaintext_key.slice(-9));
    expect(answer.text).not.toMatch(/hash/i);
  });

  test('expires_at is null when the key does not expire', async () => {
    const { body } = await create();

    expect((await listed(body.id)).expires_at).toBeNull();
  });

  test('is a bare array, complete, newest first, with X-Total-Count', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 60; i++) ids.push((await create()).body.id);

    const { body, headers } = await platform.admin('GET', '/admin/api-keys');

    expect(Array.isArray(body)).toBe(true);
    expect(headers.get('x-total-count')).toBe(String(body.length));
    const mine = body.map((key: { id: string }) => key.id).filter((id: string) => ids.includes(id));
    expect(mine).toEqual(ids.reverse());
  });
});

describe('DELETE /admin/api-keys/:id', () => {
  test('answers 200 with message and id, and the record is kept with enabled false', async () => {
    const { body: created } = await create();

    const answer = await platform.admin('DELETE', `/admin/api-keys/${created.id}`);

    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ message: expect.stringMatching(/\S/), id: created.id });
    expect(await listed(created.id)).toMatchObject({ enabled: false });
  });

  test('refuses a cancel_jobs that is neither true nor false, and revokes nothing', async () => {
    const { body: created } = await create();

    const answer = await platform.admin('DELETE', `/admin/api-keys/${created.id}?cancel_jobs=yes`);

    expectRefusal(answer, 400, 'validation_error');
    expect(await listed(created.id)).toMatchObject({ enabled: true });
  });

  test('with cancel_jobs=true cancels jobs that run', async () => {
    const { body: created } = await create({ scopes: ['*'] });
    const watching = await platform.key({ organization_id: created.organization_id });
    const never = gate();
    const { body: job } = await platform.request('POST', `/api/${play}`, {
      key: created.plaintext_key,
      body: acting({ until: never.path }),
    });
    await platform.jobIn(watching, job.job_id, 'active');

    await platform.admin('DELETE', `/admin/api-keys/${created.id}?cancel_jobs=true`);

    const { body: ended } = await platform.jobIn(watching, job.job_id, 'cancelled', 'completed');
    expect(ended).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
    const list = await platform.request('GET', `/api/jobs?api_key_id=${created.id}`, {
      key: watching,
    });
    expect(list.body).toMatchObject({ total: 1, data: [{ job_id: job.job_id }] });
  });

  test('of a revoked key answers 200 again', async () => {
    const { body: created } = await create();
    const first = await platform.admin('DELETE', `/admin/api-keys/${created.id}`);

    const second = await platform.admin('DELETE', `/admin/api-keys/${created.id}`);

    expect(second.status).toBe(200);
    expect(second.body).toEqual(first.body);
    expect(await listed(created.id)).toMatchObject({ enabled: false });
  });

  test('of an unknown id answers 404 not_found', async () => {
    const { body: created } = await create();
    const ids = ['0198c0de-0000-7000-8000-000000000000', 'x', '1', created.id.toUpperCase(), '%20'];
    for (const id of ids) {
      expectRefusal(await platform.admin('DELETE', `/admin/api-keys/${id}`), 404, 'not_found');
    }
    expect(await listed(created.id)).toMatchObject({ enabled: true });
  });
});

test("a key's limit cannot be edited", async () => {
  const { body: created } = await create();

  for (const method of ['PUT', 'PATCH', 'POST']) {
    const path = `/admin/api-keys/${created.id}`;
    const answer = await platform.admin(method, path, { rate_limit: 5 });

    expectRefusal(answer, 405, 'method_not_allowed');
    expect(answer.headers.get('allow')).toBe('DELETE');
  }
  expect(await listed(created.id)).toMatchObject({ rate_limit: 100 });
});

test('the admin secret may come in x-admin-secret', async () => {
  const answer = await platform.request('GET', '/admin/api-keys', {
    headers: { 'x-admin-secret': adminSecret },
  });

  expect(answer.status).toBe(200);
});
