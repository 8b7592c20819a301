import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { hostileLimits, hostileOffsets } from '../support/hostile-pages.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

const path = '/api/agents/default/memories';
const unknownId = '0191f3b0-0000-7000-8000-000000000000';
const kibibytes64 = 65_536;

/** A tenant with one memory, and that memory's path. */
async function withMemory(fields: object = { content: 'Ada likes tea' }) {
  const tenant = await newTenant(platform);
  const { body } = await tenant.post(path, fields);
  return { tenant, memory: body, at: `${path}/${body.id}` };
}

const contents = async (tenant: Tenant, query: string) => {
  const { body } = await tenant.get(`${path}${query}`);
  return body.data.map(({ content }: { content: string }) => content);
};

describe('a key without the scope memories', () => {
  async function withUsers() {
    const owner = await newTenant(platform);
    const { organization: organization_id } = owner;
    const { body: shared } = await owner.post(path, { content: 'Tea at four' });
    const { body: secret } = await owner.post(path, { content: 'Tea for ada', user_id: 'ada' });
    const keyWith = (scopes: string[]) => newTenant(platform, { organization_id, scopes });
    return { owner, shared, secret, keyWith };
  }

  test('reaches the agent’s own memories, and finds none of users', async () => {
    const { owner, shared, secret, keyWith } = await withUsers();
    const narrow = await keyWith(['agent']);
    const one = `${path}/${secret.id}`;

    for (const query of ['', '?user_id=', '?q=tea', '?tag=fact']) {
      const { body } = await narrow.get(`${path}${query}`);
      expect(body).toMatchObject({ data: [{ id: shared.id }], total: 1 });
    }
    expect((await narrow.put(`${path}/${shared.id}`, { tag: 'hour' })).status).toBe(200);
    expectRefusal(await narrow.get(one), 404, 'not_found');
    expectRefusal(await narrow.put(one, { content: 'changed' }), 404, 'not_found');
    expectRefusal(await narrow.delete(one), 404, 'not_found');
    expect((await owner.get(one)).body).toEqual(secret);
  });

  test('is refused where it names a user', async () => {
    const { keyWith } = await withUsers();
    const narrow = await keyWith(['agent', 'approvals']);

    for (const query of ['?user_id=ada', '?user_id=ada&limit=x']) {
      expectRefusal(await narrow.get(`${path}${query}`), 403, 'insufficient_scope');
    }
    const made = { content: 'x', user_id: 'ada' };
    expectRefusal(await narrow.post(path, made), 403, 'insufficient_scope');
    expect((await narrow.post(path, { content: 'x', user_id: null })).status).toBe(201);
  });

  test.each(['memories', 'user-data'])('with %s it reaches them all', async (scope) => {
    const { secret, keyWith } = await withUsers();
    const clerk = await keyWith([scope]);

    expect((await clerk.get(path)).body).toMatchObject({ total: 2 });
    expect((await clerk.get(`${path}?user_id=ada`)).body).toMatchObject({ data: [secret] });
    expect((await clerk.delete(`${path}/${secret.id}`)).status).toBe(204);
  });
});

describe('GET /api/users/:userId/agents', () => {
  const agents = '/api/users/ada/agents';

  test('lists the agents that have memories of the user, by id, with their number', async () => {
    const tenant = await newTenant(platform);
    for (const id of ['support', 'empty', 'analyst']) await tenant.post('/api/agents', { id });
    const add = (agent: string, user_id: string | null) =>
      tenant.post(`/api/agents/${agent}/memories`, { content: 'Ada likes tea', user_id });
    for (const agent of ['support', 'support', 'analyst', 'default']) await add(agent, 'ada');
    await add('empty', 'bob');
    await add('empty', null);
    const gone = await add('default', 'ada');
    await tenant.delete(`${path}/${gone.body.id}`);

    const support = { agent_id: 'support', memories: 2, has_profile: false };
    const all = ['analyst', 'default'].map((agent_id) => ({
      agent_id,
      memories: 1,
      has_profile: false,
    }));
    expect((await tenant.get(agents)).body).toEqual({
      data: [...all, support],
      ...{ total: 3, limit: 50, offset: 0 },
    });
    expect((await tenant.get(`${agents}?limit=1&offset=2`)).body).toEqual({
      data: [support],
      ...{ total: 3, limit: 1, offset: 2 },
    });
    await tenant.delete('/api/agents/support');
    expect((await tenant.get(agents)).body).toMatchObject({ data: all, total: 2 });
  });

  test('is empty for an unknown user, and in another organization', async () => {
    const tenant = await newTenant(platform);
    await tenant.post(path, { content: 'Ada likes tea', user_id: 'ada' });
    const none = { data: [], total: 0, limit: 50, offset: 0 };

    expect((await tenant.get('/api/users/bob/agents')).body).toEqual(none);
    expect((await (await newTenant(platform)).get(agents)).body).toEqual(none);
  });

  test.each([...hostileLimits, ...hostileOffsets])('%s is 400', async (query) => {
    const tenant = await newTenant(platform);

    const [field = ''] = /^[a-z]+/.exec(query) ?? [];
    expectInvalid(await tenant.get(`${agents}?${query}`), field);
  });
});

describe('POST /api/agents/:agentId/memories', () => {
  test('answers 201 with the memory, and Location', async () => {
    const tenant = await newTenant(platform);
    const fields = {
      content: 'Ada likes tea 🍵\r\n\u202eand ‮more',
      tag: 'customer-context',
      metadata: { customer: 'ada', nested: { deep: [1, null, 'x'] }, '': '' },
    };

    const { status, body, headers } = await tenant.post(path, fields);

    expect(status).toBe(201);
    expect(body).toEqual({
      id: anId,
      agent_id: 'default',
      ...fields,
      user_id: null,
      created_at: aTimestamp,
      updated_at: body.created_at,
      expires_at: null,
      source: null,
    });
    expect(headers.get('location')).toBe(`${path}/${body.id}`);
    const { status: found, body: again } = await tenant.get(`${path}/${body.id}`);
    expect({ found, again }).toEqual({ found: 200, again: body });
  });

  test('may name a user and a moment in the future', async () => {
    const tenant = await newTenant(platform);
    const fields = { content: 'x', user_id: 'ada', expires_at: '2999-01-01T00:00:00.000Z' };

    const { status, body } = await tenant.post(path, fields);

    expect({ status, body }).toMatchObject({ status: 201, body: fields });
    const one = `${path}/${body.id}`;
    expect((await tenant.put(one, { expires_at: null })).body).toMatchObject({ expires_at: null });
    expectInvalid(await tenant.post(path, { ...fields, user_id: '' }), 'user_id');
    const past = { expires_at: '2001-01-01T00:00:00Z' };
    expectInvalid(await tenant.post(path, { ...fields, ...past }), 'expires_at');
    expectInvalid(await tenant.put(one, past), 'expires_at');
    expectInvalid(await tenant.put(one, { user_id: 'bob' }), 'user_id');
    expect((await tenant.get(one)).body).toMatchObject({ user_id: 'ada' });
  });

  test('the tag is fact and the metadata {} when they are left out', async () => {
    const { memory } = await withMemory({ content: 'x' });

    expect(memory).toMatchObject({ tag: 'fact', metadata: {} });
  });

  test('content is required', async () => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.post(path, {}), 'content');
    expectInvalid(await tenant.post(path, { tag: 'x' }), 'content');
  });

  const wrong: [string, unknown[]][] = [
    [
      'content',
      [
        '',
        1,
        null,
        true,
        [],
        {},
        'x'.repeat(kibibytes64 + 1),
        '🏔'.repeat(16_385),
        'é'.repeat(40_000),
      ],
    ],
    ['tag', ['', 1, null, [], {}, 'x'.repeat(201), '🏔'.repeat(201), 'x'.repeat(500_000)]],
    ['metadata', ['{}', null, [], 1, { a: 'x'.repeat(kibibytes64) }, { a: '🏔'.repeat(16_384) }]],
  ];

  test.each(wrong)('%s of a wrong type or size is refused and named', async (field, values) => {
    const { tenant, memory, at } = await withMemory();

    for (const value of values) {
      expectInvalid(await tenant.post(path, { content: 'x', [field]: value }), field);
      expectInvalid(await tenant.put(at, { [field]: value }), field);
    }
    expect((await tenant.get(path)).body.data).toEqual([memory]);
  });

  test('values of the maximum length are accepted', async () => {
    const tenant = await newTenant(platform);
    const longest = {
      content: '🏔'.repeat(16_384),
      tag: '🏔'.repeat(200),
      metadata: { a: 'x'.repeat(kibibytes64 - '{"a":""}'.length) },
    };

    const { status, body } = await tenant.post(path, longest);

    expect(status).toBe(201);
    expect(body).toMatchObject(longest);
    expect((await tenant.get(`${path}?tag=${encodeURIComponent(longest.tag)}`)).body.total).toBe(1);
  });

  test.each(['id', 'agent_id', 'created_at', 'updated_at', 'organization_id', 'foo', 'Content'])(
    'an unknown field is refused and named: %s',
    async (field) => {
      const { tenant, at } = await withMemory();

      expectInvalid(await tenant.post(path, { content: 'x', [field]: 'x' }), field);
      expectInvalid(await tenant.put(at, { [field]: 'x' }), field);
    },
  );

  test.each([
    ['no body', ''],
    ['null', 'null'],
    ['a list', '[]'],
    ['a text', '"x"'],
    ['a number', '1'],
    ['broken JSON', '{"content":'],
    ['an escaped NUL', '{"content":"a\\u0000b"}'],
    ['a lone surrogate', '{"content":"\\ud800"}'],
    ['a NUL in a tag', '{"content":"x","tag":"\\u0000"}'],
    ['a NUL in a key of the metadata', '{"content":"x","metadata":{"\\u0000":1}}'],
    ['__proto__', '{"content":"x","metadata":{"__proto__":{"x":1}}}'],
    ['__proto__, escaped', '{"content":"x","metadata":{"\\u005f_proto__":{"x":1}}}'],
    ['constructor.prototype', '{"content":"x","metadata":{"constructor":{"prototype":{}}}}'],
    ['a number beyond doubles', '{"content":"x","metadata":{"n":1e999}}'],
    ['deep nesting', `{"content":"x","metadata":{"a":${'['.repeat(100)}${']'.repeat(100)}}}`],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])],
  ])('a body with %s is refused', async (_, body) => {
    const { tenant, at } = await withMemory();

    expectRefusal(await tenant.post(path, body), 400, 'validation_error');
    expectRefusal(await tenant.put(at, body), 400, 'validation_error');
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
    expect((await tenant.get(path)).body.total).toBe(1);
  });

  test('another content type is 415, a body beyond 1 MiB 413', async () => {
    const { tenant, at } = await withMemory();
    const text = { 'content-type': 'text/plain' };

    expectRefusal(await tenant.post(path, '{"content":"x"}', text), 415, 'unsupported_media_type');
    expectRefusal(await tenant.put(at, '{"content":"x"}', text), 415, 'unsupported_media_type');
    const large = { content: 'x'.repeat(1_048_577) };
    expectRefusal(await tenant.post(path, large), 413, 'payload_too_large');
  });

  test('an unknown agent is 404 not_found, before the body is judged', async () => {
    const tenant = await newTenant(platform);

    for (const id of ['nobody', 'Default', 'default%20', '*', 'x'.repeat(5_000)]) {
      const answer = await tenant.post(`/api/agents/${id}/memories`, { nonsense: true });
      expectRefusal(answer, 404, 'not_found');
      expectRefusal(await tenant.get(`/api/agents/${id}/memories?limit=0`), 404, 'not_found');
    }
  });

  test('a key is needed', async () => {
    const { at } = await withMemory();

    for (const [method, url] of [
      ['GET', path],
      ['POST', path],
      ['GET', at],
      ['PUT', at],
      ['DELETE', at],
    ] as const) {
      const answer = await platform.request(method, url);
      expectRefusal(answer, 401, 'authentication_required');
    }
  });

  test('any scope will do', async () => {
    const tenant = await newTenant(platform, { scopes: ['text'] });

    expect((await tenant.post(path, { content: 'x' })).status).toBe(201);
  });
});

describe('GET /api/agents/:agentId/memories', () => {
  test('is {data, total, limit, offset}, newest first, 50 at a time', async () => {
    const tenant = await newTenant(platform);
    for (let i = 1; i <= 60; i += 1) await tenant.post(path, { content: `${i}` });

    const { status, body } = await tenant.get(path);

    expect(status).toBe(200);
    const { data, ...rest } = body;
    expect(rest).toEqual({ total: 60, limit: 50, offset: 0 });
    expect(data.map(({ content }: { content: string }) => content)).toEqual(
      Array.from({ length: 50 }, (_, i) => `${60 - i}`),
    );
    const last = (await tenant.get(`${path}?limit=200&offset=58`)).body;
    expect(last).toMatchObject({ total: 60, limit: 200, offset: 58 });
    expect(last.data).toHaveLength(2);
    expect((await tenant.get(`${path}?offset=60`)).body).toMatchObject({ data: [], total: 60 });
  });

  test('tag is an exact match', async () => {
    const tenant = await newTenant(platform);
    for (const tag of ['fact', 'Fact', 'fact ', 'fac', 'a&b=c', '100%', 'ﬁ', 'fi']) {
      await tenant.post(path, { content: tag, tag });
    }

    for (const tag of ['fact', 'Fact', 'fact ', 'a&b=c', '100%', 'ﬁ']) {
      expect(await contents(tenant, `?tag=${encodeURIComponent(tag)}`)).toEqual([tag]);
      const search = `?tag=${encodeURIComponent(tag)}&q=${encodeURIComponent(tag)}`;
      expect(await contents(tenant, search)).toEqual([tag]);
    }
    for (const tag of ['', 'FACT', '%', '*', 'fa_t']) {
      expect(await contents(tenant, `?tag=${encodeURIComponent(tag)}`)).toEqual([]);
    }
  });

  test('q finds those that have any of its words, best first', async () => {
    const tenant = await newTenant(platform);
    await tenant.post(path, { content: 'Tea, and many other things that are not of interest' });
    await tenant.post(path, { content: 'TÉA tea' });
    await tenant.post(path, { content: 'coffee' });
    await tenant.post(path, { content: 'teapot' });

    const { body } = await tenant.get(`${path}?q=tea&limit=1`);

    expect(body).toMatchObject({ total: 2, limit: 1, offset: 0 });
    expect(body.data[0].content).toBe('TÉA tea');
    expect(await contents(tenant, '?q=interest%20TEA')).toEqual([
      'Tea, and many other things that are not of interest',
      'TÉA tea',
    ]);
    expect(await contents(tenant, '?q=tea%20coffee')).toEqual([
      'coffee',
      'TÉA tea',
      'Tea, and many other things that are not of interest',
    ]);
    expect(await contents(tenant, '?q=%22tea%20coffee%22')).toEqual([]);
    expect(await contents(tenant, '?q=tea&offset=2')).toEqual([]);
  });

  test.each([
    ...[
      '',
      ' ',
      '"',
      "'",
      '*',
      '%',
      '\\',
      '(',
      ')',
      'AND',
      'OR',
      'NOT',
      'NEAR(',
      'a:b',
      ':*',
      '^',
      '-',
    ],
    ...[
      '"tea',
      'tea*',
      'tea:*',
      'tea & !',
      'tokens:tea',
      '{a b}:c',
      "'; drop table memories",
      '1=1',
    ],
    ...['\n', '👍', '\u202e', 'ﷺ', 'x'.repeat(1_000), '🏔'.repeat(1_000), 'a '.repeat(500)],
  ])('query syntax is plain text, never an error: %j', async (q) => {
    const { tenant } = await withMemory({ content: 'nothing of it' });

    const { status, body } = await tenant.get(`${path}?q=${encodeURIComponent(q)}`);

    expect({ status, ...body }).toEqual({ status: 200, data: [], total: 0, limit: 50, offset: 0 });
  });

  test.each([
    ['q', `q=${'x'.repeat(1_001)}`],
    ['q', 'q=a&q=b'],
    ['q', 'q=%00'],
    ['q', 'q=%FF'],
    ['tag', `tag=${'x'.repeat(201)}`],
    ['tag', 'tag=a&tag=b'],
    ['tag', 'tag=%00'],
  ])('%s is refused in %s', async (field, query) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get(`${path}?${query}`), field);
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

describe('PUT /api/agents/:agentId/memories/:memoryId', () => {
  test('changes only the given fields, and refreshes updated_at', async () => {
    const { tenant, memory, at } = await withMemory({ content: 'a', tag: 't', metadata: { a: 1 } });
    clock.advance(1_000);

    const { status, body } = await tenant.put(at, { content: 'b' });

    expect(status).toBe(200);
    expect(body).toEqual({ ...memory, content: 'b', updated_at: aTimestamp });
    expect(Date.parse(body.updated_at)).toBe(Date.parse(memory.updated_at) + 1_000);
    expect((await tenant.get(at)).body).toEqual(body);
  });

  test('metadata is replaced as a whole', async () => {
    const { tenant, at } = await withMemory({ content: 'a', metadata: { a: 1, b: 2 } });

    expect((await tenant.put(at, { metadata: { c: 3 } })).body.metadata).toEqual({ c: 3 });
  });

  test('{} refreshes updated_at, and changes nothing else', async () => {
    const { tenant, memory, at } = await withMemory();
    clock.advance(1_000);

    const { status, body } = await tenant.put(at, {});

    expect({ status, body }).toEqual({
      status: 200,
      body: { ...memory, updated_at: body.updated_at },
    });
    expect(Date.parse(body.updated_at) - Date.parse(memory.updated_at)).toBe(1_000);
  });

  test('a changed memory is found only by its new words and tag', async () => {
    const { tenant, at } = await withMemory({ content: 'tea', tag: 'old' });

    await tenant.put(at, { content: 'coffee', tag: 'new' });

    expect(await contents(tenant, '?q=tea')).toEqual([]);
    expect(await contents(tenant, '?q=coffee&tag=old')).toEqual([]);
    expect(await contents(tenant, '?tag=old')).toEqual([]);
    expect(await contents(tenant, '?q=coffee&tag=new')).toEqual(['coffee']);
  });
});

describe('DELETE /api/agents/:agentId/memories/:memoryId', () => {
  test('answers 204 with an empty body, and the memory no longer exists', async () => {
    const { tenant, at } = await withMemory();

    const answer = await tenant.delete(at);

    expect({ status: answer.status, text: answer.text }).toEqual({ status: 204, text: '' });
    expectRefusal(await tenant.get(at), 404, 'not_found');
    expectRefusal(await tenant.put(at, { content: 'x' }), 404, 'not_found');
    expectRefusal(await tenant.delete(at), 404, 'not_found');
    expect((await tenant.get(path)).body.total).toBe(0);
  });

  test('20 at once delete it once', async () => {
    const { tenant, at } = await withMemory();

    const answers = await Promise.all(Array.from({ length: 20 }, () => tenant.delete(at)));

    expect(answers.filter(({ status }) => status === 204)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(19);
  });
});

describe('a memory that is not there', () => {
  test('is 404 not_found, before the body is judged', async () => {
    const { tenant, memory } = await withMemory();
    const ids = [unknownId, memory.id.toUpperCase(), `${memory.id}%20`, 'x', '%25', "'", '1'];

    for (const id of ids) {
      const at = `${path}/${id}`;
      expectRefusal(await tenant.get(at), 404, 'not_found');
      expectRefusal(await tenant.put(at, { nonsense: 1 }), 404, 'not_found');
      expectRefusal(await tenant.put(at, {}), 404, 'not_found');
      expectRefusal(await tenant.delete(at), 404, 'not_found');
    }
  });

  test('and so is one of another agent or another organization, in the same words', async () => {
    const { tenant, memory, at } = await withMemory();
    const stranger = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'bob' });
    await tenant.post('/api/agents/bob/memories', { content: 'of Bob' });
    await stranger.post(path, { content: 'of a stranger' });
    const { body: unknown } = await tenant.get(`${path}/${unknownId}`);

    for (const [who, url] of [
      [tenant, `/api/agents/bob/memories/${memory.id}`],
      [stranger, at],
    ] as const) {
      for (const answer of [
        await who.get(url),
        await who.put(url, { content: 'mine' }),
        await who.put(url, {}),
        await who.delete(url),
      ]) {
        expect({ status: answer.status, body: answer.body }).toEqual({
          status: 404,
          body: unknown,
        });
      }
    }
    expect((await tenant.get(at)).body).toEqual(memory);
    expect(await contents(stranger, '')).toEqual(['of a stranger']);
    expect(await contents(stranger, '?q=tea')).toEqual([]);
    expect((await tenant.get('/api/agents/bob/memories?tag=fact')).body.total).toBe(1);
  });

  test('an agent of another organization is 404, like one that is not there', async () => {
    const { tenant } = await withMemory();
    const stranger = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'private' });
    const { body } = await stranger.get('/api/agents/nobody/memories');

    expect((await stranger.get('/api/agents/private/memories')).body).toEqual(body);
    const posted = await stranger.post('/api/agents/private/memories', { content: 'x' });
    expect({ status: posted.status, body: posted.body }).toEqual({ status: 404, body });
  });
});

describe('the profile of a user', () => {
  const ada = '/api/agents/default/profiles/ada%2Flovelace';

  test('is written, read, changed and deleted by clients', async () => {
    const tenant = await newTenant(platform);
    expect((await tenant.get(ada)).body).toEqual({
      ...{ agent_id: 'default', user_id: 'ada/lovelace', content: '', version: 0 },
      ...{ created_at: null, updated_at: null, source: null },
    });

    const written = await tenant.put(ada, { content: 'Likes tea.', version: 0 });

    expect(written.status).toBe(200);
    expect(written.body).toEqual({
      agent_id: 'default',
      user_id: 'ada/lovelace',
      content: 'Likes tea.',
      version: 1,
      created_at: aTimestamp,
      updated_at: aTimestamp,
      source: null,
    });
    expect((await tenant.get(ada)).body).toEqual(written.body);
    const changed = await tenant.put(ada, { content: 'Likes coffee.' });
    expect(changed.body).toMatchObject({ version: 2, content: 'Likes coffee.' });
    expectRefusal(await tenant.put(ada, { content: 'x', version: 1 }), 409, 'conflict');
    const { body: agents } = await tenant.get('/api/users/ada%2Flovelace/agents');
    expect(agents.data).toEqual([{ agent_id: 'default', memories: 0, has_profile: true }]);
    expect((await tenant.delete(ada)).status).toBe(204);
    expect((await tenant.delete(ada)).status).toBe(204);
    expect((await tenant.get(ada)).body.version).toBe(0);
    expect((await tenant.get('/api/users/ada%2Flovelace/agents')).body.total).toBe(0);
  });

  test('has 1 byte to as many as its agent says: 400', async () => {
    const tenant = await newTenant(platform);
    await tenant.put('/api/agents/default', { profile: { max_bytes: 200 } });

    expect((await tenant.put(ada, { content: 'é'.repeat(100) })).status).toBe(200);
    for (const body of [
      { content: 'é'.repeat(101) },
      { content: '' },
      {},
      { content: 'x', version: -1 },
      { content: 'x', colour: 'red' },
    ]) {
      expectRefusal(await tenant.put(ada, body), 400, 'validation_error');
    }
    for (const max_bytes of [199, 8_193]) {
      const refused = await tenant.put('/api/agents/default', { profile: { max_bytes } });
      expectRefusal(refused, 400, 'validation_error');
    }
  });

  test('is gone with its agent, and another agent of the id has none', async () => {
    const tenant = await newTenant(platform);
    await tenant.put(ada, { content: 'Likes tea.' });

    await tenant.delete('/api/agents/default');

    expectRefusal(await tenant.get(ada), 404, 'not_found');
    await tenant.post('/api/agents', { id: 'default' });
    expect((await tenant.get(ada)).body).toMatchObject({ content: '', version: 0 });
  });
});

test('deleting an agent deletes its memories', async () => {
  const { tenant, at } = await withMemory();

  await tenant.delete('/api/agents/default');

  expectRefusal(await tenant.get(path), 404, 'not_found');
  await tenant.post('/api/agents', { id: 'default' });
  expectRefusal(await tenant.get(at), 404, 'not_found');
  expect((await tenant.get(`${path}?q=tea`)).body.total).toBe(0);
});

test('other methods are 405 with Allow', async () => {
  const { tenant, at } = await withMemory();

  const list = await tenant.send('DELETE', path);
  const one = await tenant.send('POST', at, { body: {} });

  expectRefusal(list, 405, 'method_not_allowed');
  expect(list.headers.get('allow')).toMatch(/GET.*POST/);
  expectRefusal(one, 405, 'method_not_allowed');
});
