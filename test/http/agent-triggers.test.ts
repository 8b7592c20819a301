import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { hostileLimits, hostileOffsets } from '../support/hostile-pages.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Platform } from '../support/platform.ts';
import { sendRaw } from '../support/raw-http.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

const path = '/api/agent-triggers';
const unknownId = '0198c0de-0000-7000-8000-000000000000';
const least = {
  agent_id: 'default',
  name: 'Pushes',
  skill_category: 'staged',
  skill_name: 'any',
};
const full = {
  ...least,
  name: 'Pushes 🏔️',
  skill_version: 'v1.0',
  input: { a: { nested: [1, null, 'x'] }, '': '' },
  mapping: '{"text": body.text, "event": headers."x-github-event"}',
  event: null,
  job_key: null,
  priority: 'high',
  rate_limit: 5,
  active: false,
};
const signing_secret = 'sixteen letters!';
const defaults = {
  skill_version: 'v1.0',
  input: {},
  mapping: null,
  event: null,
  job_key: null,
  priority: null,
  rate_limit: 60,
  has_signing_secret: false,
  active: true,
};
const moments = { created_at: aTimestamp, updated_at: aTimestamp };

async function newTrigger(tenant: Tenant, fields: Record<string, unknown> = {}) {
  const { status, body, text } = await tenant.post(path, { ...least, ...fields });
  if (status !== 201) throw new Error(`No trigger: ${text}`);
  const { token, url: _, ...trigger } = body;
  return { ...trigger, token, shown: trigger, at: `${path}/${body.id}` };
}

test('include=refusal has the reason why calls of a trigger would start no job', async () => {
  const maker = await newTenant(platform);
  const other = await newTenant(platform, { organization_id: maker.organization });
  const { at } = await newTrigger(maker);
  const refusals = async () => {
    const [listed] = (await other.get(`${path}?include=refusal`)).body.data;
    return [listed.refusal, (await other.get(`${at}?include=refusal`)).body.refusal];
  };

  const before = await refusals();
  await other.put('/api/agents/default', { status: 'paused' });
  const paused = await refusals();
  await platform.admin('DELETE', `/admin/api-keys/${maker.keyId}`);
  const revoked = await refusals();

  const agentPaused = { code: 'agent_paused', message: 'The agent default is paused' };
  const message = 'Its key is revoked or expired';
  const keyRevoked = { code: 'invalid_api_key', message };
  expect(before).toEqual([null, null]);
  expect(paused).toEqual([agentPaused, agentPaused]);
  expect(revoked).toEqual([keyRevoked, keyRevoked]);
  expect((await other.get(at)).body).not.toHaveProperty('refusal');
  expectInvalid(await other.get(`${path}?include=origin`), 'include');
});

describe('POST /api/agent-triggers', () => {
  test('answers 201 with the trigger, its token and url, and Location', async () => {
    const tenant = await newTenant(platform);

    const { status, body, headers } = await tenant.post(path, { ...full, signing_secret });

    const shown = { id: anId, ...full, has_signing_secret: true, ...moments };
    expect(status).toBe(201);
    expect(body).toEqual({
      ...shown,
      token: expect.stringMatching(/^trg_[A-Za-z0-9_-]{43}$/),
      url: `${platform.url}/api/webhooks/agent/${body.token}`,
    });
    expect(headers.get('location')).toBe(`${path}/${body.id}`);
    const read = await tenant.get(`${path}/${body.id}`);
    expect(read.body).toEqual(shown);
  });

  test('the url begins with PUBLIC_URL if that is set, with any Host header', async () => {
    const own = await startStaged({
      environment: { PUBLIC_URL: 'https://skills.example.com/platform/' },
    });
    const tenant = await newTenant(own);

    const { body } = await tenant.post(path, full);

    const under = 'https://skills.example.com/platform/api/webhooks/agent/';
    expect(body.url).toBe(under + body.token);
    await own.stop();
  });

  test('omitted fields have defaults', async () => {
    const tenant = await newTenant(platform);

    const { status, body } = await tenant.post(path, least);

    expect(status).toBe(201);
    expect(body).toEqual({
      ...{ id: anId, ...least, ...defaults, ...moments },
      ...{ token: expect.any(String), url: expect.any(String) },
    });
  });

  test('each token is new, shown once, and stored as a hash alone', async () => {
    const tenant = await newTenant(platform);

    const [first, second] = [await newTrigger(tenant), await newTrigger(tenant)];

    expect(first.token).not.toBe(second.token);
    const shown = [(await tenant.get(path)).text, (await tenant.get(first.at)).text];
    shown.push((await tenant.put(first.at, { name: 'x' })).text);
    const rows = await platform.database.read.kysely
      .selectFrom('agent_triggers')
      .selectAll()
      .where('organization_id', '=', tenant.organization)
      .execute();
    for (const text of [...shown, JSON.stringify(rows)]) {
      expect(text).not.toContain(first.token.slice(4));
    }
    for (const text of shown) expect(text).not.toContain(rows[0]?.token_hash);
  });

  test('the signing_secret is never shown', async () => {
    const tenant = await newTenant(platform);

    const created = await tenant.post(path, { ...least, signing_secret });
    const at = `${path}/${created.body.id}`;

    const changed = await tenant.put(at, { signing_secret: `${signing_secret} too` });
    for (const { text } of [created, changed, await tenant.get(at), await tenant.get(path)]) {
      expect(text).not.toContain(signing_secret);
      expect(text).toContain('"has_signing_secret":true');
    }
  });

  test('the url is the path alone when the request has no usable Host', async () => {
    const tenant = await newTenant(platform);
    const body = JSON.stringify(least);
    const send = (host: string, version = '1.1') =>
      sendRaw(
        platform.url,
        `POST ${path} HTTP/${version}\r\n${host}x-api-key: ${tenant.key}\r\n` +
          `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );

    const unreadable = ['a b<c', 'a/b', 'a?b', 'a#b', 'user@a', 'a\\b', 'a:x'];
    for (const host of unreadable) expect((await send(`host: ${host}\r\n`)).status).toBe(400);
    const hosts = ['0x7f.1', ''];
    const answers = await Promise.all(hosts.map((host) => send(`host: ${host}\r\n`)));
    for (const answer of [await send('', '1.0'), ...answers]) {
      expect(answer.status).toBe(201);
      expect(answer.body.url).toBe(`/api/webhooks/agent/${answer.body.token}`);
    }
    const named = await send('host: Skills.example.com:8080\r\n');
    expect(named.body.url).toMatch(
      /^http:\/\/skills\.example\.com:8080\/api\/webhooks\/agent\/trg_/,
    );
  });

  test.each(['agent_id', 'name', 'skill_category', 'skill_name'])(
    '%s is required',
    async (field) => {
      const tenant = await newTenant(platform);

      expectInvalid(await tenant.post(path, { ...least, [field]: undefined }), field);
    },
  );

  const wrong: [string, unknown[]][] = [
    ['agent_id', ['', 1, null, [], {}, 'x'.repeat(201)]],
    ['name', ['', 1, null, [], {}, 'x'.repeat(201), 'x'.repeat(1_000_000)]],
    ['skill_category', ['', 1, null, [], 'x'.repeat(201)]],
    ['skill_name', ['', 1, null, [], 'x'.repeat(201)]],
    ['skill_version', ['', 1, null, [], 'x'.repeat(201)]],
    ['input', ['{}', null, [], 1, true, { a: 'x'.repeat(65_536) }, { a: '🏔'.repeat(16_384) }]],
    ['mapping', ['', 1, [], {}, 'x'.repeat(8_193), `"${'🏔'.repeat(2_048)}"`]],
    ['rate_limit', [0, -1, 1.5, '60', true, [], 1_000_001, 2 ** 53]],
    ['signing_secret', ['', 'x'.repeat(15), 'x'.repeat(201), 1, [], {}, true]],
    ['active', ['true', null, 0, 1, []]],
  ];
  test.each(wrong)('%s of a wrong type or size is refused and named', async (field, values) => {
    const tenant = await newTenant(platform);
    const { at } = await newTrigger(tenant);

    for (const value of values) {
      expectInvalid(await tenant.post(path, { ...least, [field]: value }), field);
      expectInvalid(await tenant.put(at, { [field]: value }), field);
    }
    expect((await tenant.get(path)).body.total).toBe(1);
  });

  test.each([
    ['no base64', 'whsec_!!!!!!!!!!!!!!!!!!!!!!!!'],
    ['base64 with rubbish in it', `whsec_${Buffer.alloc(24, 1).toString('base64')}é`],
  ])('a signing_secret of Standard Webhooks with %s is 400', async (_title, secret) => {
    const tenant = await newTenant(platform);
    const { at } = await newTrigger(tenant);

    expectInvalid(await tenant.post(path, { ...least, signing_secret: secret }), 'signing_secret');
    expectInvalid(await tenant.put(at, { signing_secret: secret }), 'signing_secret');
  });

  test('values of the maximum length are accepted', async () => {
    const tenant = await newTenant(platform);
    const longest = {
      name: '🏔'.repeat(200),
      input: { a: 'x'.repeat(65_536 - '{"a":""}'.length) },
      mapping: `"${'x'.repeat(8_190)}"`,
      rate_limit: 1_000_000,
    };

    const { status, body } = await tenant.post(path, {
      ...{ ...least, ...longest },
      signing_secret: 'é'.repeat(200),
    });

    expect(status).toBe(201);
    expect(body).toMatchObject(longest);
    const key = `whsec_${Buffer.alloc(16, 1).toString('base64url').replace(/=+$/, '')}`;
    expect((await tenant.post(path, { ...least, signing_secret: key })).status).toBe(201);
  });

  test('mapping and signing_secret may be null, as when they are left out', async () => {
    const tenant = await newTenant(platform);

    const { shown } = await newTrigger(tenant, { mapping: null, signing_secret: null });

    expect(shown).toMatchObject({ mapping: null, has_signing_secret: false });
  });

  test.each([
    ...['id', 'token', 'url', 'token_hash', 'api_key_id', 'organization_id', 'created_at'],
    ...['has_signing_secret', 'foo', 'Name', 'toString'],
  ])('an unknown field is refused and named: %s', async (field) => {
    const tenant = await newTenant(platform);
    const { at } = await newTrigger(tenant);

    expectInvalid(await tenant.post(path, { ...least, [field]: 'x' }), field);
    expectInvalid(await tenant.put(at, { [field]: 'x' }), field);
  });

  test('an unknown agent is 404 not_found, an unknown skill 404 skill_not_found', async () => {
    const tenant = await newTenant(platform);
    const { at } = await newTrigger(tenant);
    const other = await newTenant(platform);
    await other.post('/api/agents', { id: 'secretive' });

    for (const agent_id of ['nobody', 'secretive', 'Not A Slug']) {
      for (const answer of [
        await tenant.post(path, { ...least, agent_id }),
        await tenant.put(at, { agent_id }),
      ]) {
        expectRefusal(answer, 404, 'not_found');
        expect(answer.body.message).toBe('Agent not found');
      }
    }
    for (const skill of [
      { skill_category: 'nowhere' },
      { skill_name: 'none' },
      { skill_name: 'Any' },
      { skill_version: 'v9.0' },
      { skill_version: 'latest' },
    ]) {
      expectRefusal(await tenant.post(path, { ...least, ...skill }), 404, 'skill_not_found');
      expectRefusal(await tenant.put(at, skill), 404, 'skill_not_found');
    }
    expect((await tenant.get(path)).body.total).toBe(1);
  });

  test('an inactive skill is 404 skill_not_found; a trigger of it can still be switched off', async () => {
    const tenant = await newTenant(platform);
    const { at } = await newTrigger(tenant, { skill_name: 'versions', skill_version: 'v1.9' });
    await platform.admin('POST', '/admin/skills/staged/v1.9/versions/deprecate');
    const inactive = { skill_name: 'versions', skill_version: 'v1.9' };

    const created = await tenant.post(path, { ...least, ...inactive });
    const other = await newTrigger(tenant);
    const changed = await tenant.put(other.at, inactive);
    const off = await tenant.put(at, { active: false });
    await platform.admin('POST', '/admin/skills/staged/v1.9/versions/activate');

    expectRefusal(created, 404, 'skill_not_found');
    expectRefusal(changed, 404, 'skill_not_found');
    expect(off.status).toBe(200);
  });

  test.each([
    ['a syntax error', 'body.'],
    ['an open string', '"abc'],
    ['an open regular expression', '/abc'],
    ['a wrong regular expression', '/(/'],
    ['an unknown operator', 'a ! b'],
    ['8 KiB of brackets', '('.repeat(8_192)],
    ['8 KiB of lists', '['.repeat(8_192)],
    ['8 KiB of minus', '-'.repeat(8_192)],
    ['spaces alone', '   '],
  ])('a mapping that does not parse is 400: %s', async (_title, mapping) => {
    const tenant = await newTenant(platform);
    const { at } = await newTrigger(tenant);

    expectInvalid(await tenant.post(path, { ...least, mapping }), 'mapping');
    expectInvalid(await tenant.put(at, { mapping }), 'mapping');
    expect((await tenant.get(at)).body.mapping).toBeNull();
  });

  test('a body is needed, and it is a JSON object', async () => {
    const tenant = await newTenant(platform);
    const { at } = await newTrigger(tenant);

    for (const body of [undefined, '', '{', '[]', 'null', '"x"', '1']) {
      expectRefusal(await tenant.post(path, body), 400, 'validation_error');
      expectRefusal(await tenant.put(at, body), 400, 'validation_error');
    }
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expectRefusal(await tenant.post(path, 'a=1', form), 415, 'unsupported_media_type');
    const big = { ...least, name: 'x'.repeat(1_100_000) };
    expectRefusal(await tenant.post(path, big), 413, 'payload_too_large');
  });

  test('without a key it is 401', async () => {
    const answer = await platform.request('POST', path, { body: least });

    expectRefusal(answer, 401, 'authentication_required');
  });
});

describe('the scopes of a key', () => {
  test('have to hold what the skill requires: 403 insufficient_scope', async () => {
    const text = await newTenant(platform, { scopes: ['text', 'stage'] });
    const staged = await newTenant(platform, { scopes: ['staged'] });

    expectRefusal(await text.post(path, least), 403, 'insufficient_scope');
    const vault = await staged.post(path, { ...least, skill_name: 'vault' });
    expectRefusal(vault, 403, 'insufficient_scope');
    expect((await staged.post(path, least)).status).toBe(201);
  });

  test('are needed for the skill before a change and after it, and before the body is judged', async () => {
    const wide = await newTenant(platform);
    const narrow = await newTenant(platform, {
      organization_id: wide.organization,
      scopes: ['staged'],
    });
    const plain = await newTrigger(wide);
    const vault = await newTrigger(wide, { skill_name: 'vault' });

    const after = await narrow.put(plain.at, { skill_name: 'vault' });
    expectRefusal(after, 403, 'insufficient_scope');
    for (const body of [{}, { active: false }, { skill_name: 'any' }, { foo: 1 }, '{']) {
      expectRefusal(await narrow.put(vault.at, body), 403, 'insufficient_scope');
    }
    expect((await narrow.put(plain.at, { name: 'Other' })).status).toBe(200);
    expect((await wide.get(vault.at)).body).toEqual(vault.shown);
  });

  test('that the maker has not stop no change: the trigger moves to the key that changes it', async () => {
    const maker = await newTenant(platform, { scopes: ['staged'] });
    const wide = await newTenant(platform, { organization_id: maker.organization });
    const { at } = await newTrigger(maker);

    expect((await wide.put(at, { skill_name: 'vault' })).status).toBe(200);
    expect((await wide.get(`${at}?include=refusal`)).body.refusal).toBeNull();
  });

  test('are not needed to look at a trigger or to delete it', async () => {
    const wide = await newTenant(platform);
    const none = await newTenant(platform, {
      organization_id: wide.organization,
      scopes: ['other'],
    });
    const { at } = await newTrigger(wide);

    expect((await none.get(at)).status).toBe(200);
    expect((await none.get(path)).body.total).toBe(1);
    expect((await none.delete(at)).status).toBe(204);
  });

  test('come after the agent and the skill, and before the mapping', async () => {
    const tenant = await newTenant(platform, { scopes: ['other'] });
    const send = (fields: object) => tenant.post(path, { ...least, mapping: 'body.', ...fields });

    expectRefusal(await send({ agent_id: 'nobody', skill_name: 'none' }), 404, 'not_found');
    expectRefusal(await send({ skill_name: 'none' }), 404, 'skill_not_found');
    expectRefusal(await send({}), 403, 'insufficient_scope');
  });
});

describe('GET /api/agent-triggers', () => {
  test('is {data, total, limit, offset}, newest first', async () => {
    const tenant = await newTenant(platform);
    for (const name of ['b', 'c', 'a']) await newTrigger(tenant, { name });
    const page = async (query: string) => {
      const { status, body } = await tenant.get(`${path}${query}`);
      expect(status).toBe(200);
      const { data, ...rest } = body;
      return [...data.map(({ name }: { name: string }) => name), rest];
    };

    expect(await page('')).toEqual(['a', 'c', 'b', { total: 3, limit: 50, offset: 0 }]);
    expect(await page('?limit=1&offset=1')).toEqual(['c', { total: 3, limit: 1, offset: 1 }]);
    expect(await page('?limit=200&offset=3')).toEqual([{ total: 3, limit: 200, offset: 3 }]);
  });

  test.each([...hostileLimits, 'limit=201'])('%s is 400', async (query) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get(`${path}?${query}`), 'limit');
  });

  test.each(hostileOffsets)('%s is 400', async (query) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get(`${path}?${query}`), 'offset');
  });
});

describe('PUT /api/agent-triggers/:triggerId', () => {
  test('changes only the given fields, and refreshes updated_at', async () => {
    const tenant = await newTenant(platform);
    const { at, shown } = await newTrigger(tenant, { ...full, signing_secret });
    clock.advance(1_000);

    const { status, body } = await tenant.put(at, { name: 'Other' });

    expect(status).toBe(200);
    expect(body).toEqual({ ...shown, name: 'Other', updated_at: aTimestamp });
    expect(Date.parse(body.updated_at)).toBe(Date.parse(shown.updated_at) + 1_000);
    expect((await tenant.get(at)).body).toEqual(body);
  });

  test('everything may change, input as a whole', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'other' });
    const { at, shown } = await newTrigger(tenant, { input: { a: 1, b: 2 } });
    const changes = {
      ...{ ...full, agent_id: 'other', skill_name: 'versions', skill_version: 'v2.0' },
      input: { c: 3 },
    };

    const { body } = await tenant.put(at, { ...changes, signing_secret });

    expect(body).toEqual({ ...shown, ...changes, has_signing_secret: true, ...moments });
  });

  test('null removes mapping and signing_secret', async () => {
    const tenant = await newTenant(platform);
    const { at } = await newTrigger(tenant, { ...full, signing_secret });

    const { body } = await tenant.put(at, { mapping: null, signing_secret: null });

    expect(body).toMatchObject({ mapping: null, has_signing_secret: false });
  });

  test('{} changes nothing', async () => {
    const tenant = await newTenant(platform);
    const { at, shown } = await newTrigger(tenant, full);
    clock.advance(1_000);

    const { status, body } = await tenant.put(at, {});

    expect({ status, body }).toEqual({ status: 200, body: shown });
  });

  test('an unknown one is 404 not_found, with any body', async () => {
    const tenant = await newTenant(platform);

    for (const id of [unknownId, 'x', '%20', '*', unknownId.toUpperCase(), 'x'.repeat(5_000)]) {
      for (const body of [{}, { name: 'x' }, { foo: 1 }, '{']) {
        const answer = await tenant.put(`${path}/${id}`, body);
        expectRefusal(answer, 404, 'not_found');
        expect(answer.body.message).toBe('Trigger not found');
      }
    }
  });
});

describe('DELETE /api/agent-triggers/:triggerId', () => {
  test('answers 204 with an empty body, and the trigger no longer exists', async () => {
    const tenant = await newTenant(platform);
    const { at } = await newTrigger(tenant);

    const answer = await tenant.delete(at);

    expect({ status: answer.status, text: answer.text }).toEqual({ status: 204, text: '' });
    expectRefusal(await tenant.get(at), 404, 'not_found');
    expectRefusal(await tenant.delete(at), 404, 'not_found');
    expect((await tenant.get(path)).body.total).toBe(0);
  });

  test('an agent is not deleted while a trigger names it: 409 conflict', async () => {
    const tenant = await newTenant(platform);
    for (const id of ['one', 'two']) await tenant.post('/api/agents', { id });
    const { at } = await newTrigger(tenant, { agent_id: 'one', active: false });

    expectRefusal(await tenant.delete('/api/agents/one'), 409, 'conflict');
    await tenant.put(at, { agent_id: 'two' });
    expect((await tenant.delete('/api/agents/one')).status).toBe(204);
    expectRefusal(await tenant.delete('/api/agents/two'), 409, 'conflict');
    await tenant.delete(at);
    expect((await tenant.delete('/api/agents/two')).status).toBe(204);
  });
});

describe("another organization's trigger", () => {
  test('is 404 with the same body as a random id, and is not changed', async () => {
    const [a, b] = await Promise.all([newTenant(platform), newTenant(platform)]);
    const { id, at, shown } = await newTrigger(a);

    for (const [method, body] of [['GET'], ['PUT', { name: 'mine' }], ['DELETE']] as const) {
      const options = body === undefined ? {} : { body };
      const theirs = await b.send(method, at, options);
      const nobodys = await b.send(method, `${path}/${unknownId}`, options);
      expectRefusal(theirs, 404, 'not_found');
      expect(theirs.text).toBe(nobodys.text);
      expect([...theirs.headers.keys()].sort()).toEqual([...nobodys.headers.keys()].sort());
      expect(theirs.text).not.toContain(id);
    }
    expect((await b.get(path)).body).toEqual({ data: [], total: 0, limit: 50, offset: 0 });
    expect((await a.get(at)).body).toEqual(shown);
  });
});

test.each(['PATCH', 'POST'])('%s on a trigger is 405 with Allow', async (method) => {
  const tenant = await newTenant(platform);
  const { at } = await newTrigger(tenant);

  const answer = await tenant.send(method, at, { body: {} });

  expectRefusal(answer, 405, 'method_not_allowed');
  expect(answer.headers.get('allow')).toBe('DELETE, GET, HEAD, PUT');
});
