import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { hostileLimits, hostileOffsets } from '../support/hostile-pages.ts';
import { manualClock } from '../support/manual-clock.ts';
import { recordEvents } from '../support/outbox.ts';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

const kibibytes64 = 65_536;
const full = {
  id: 'support',
  name: 'Support 🏔️',
  description: 'Answers customers.',
  status: 'paused',
  instructions: 'Be kind.\nBe brief.',
  model: 'openai/gpt-4.1',
  fallback_models: ['anthropic/claude-3-5-haiku-latest', 'ollama/org/model:7b'],
  memory: 'read',
  recall: { limit: 7 },
  profile: { max_bytes: 300 },
  memory_formation: { quiet_seconds: 60, model: 'openai/small', max_memories: 5 },
  priority: 'low',
  max_concurrency: 7,
  keep_prompts: true,
  model_settings: {
    max_output_tokens: 30_000,
    temperature: 0.5,
    timeout_ms: 21_600_000,
    first_byte_timeout_ms: 100,
    context_tokens: 100_000,
  },
  skills: ['web/*', 'text/v1.0/summarize', 'util/v1.0/*', '*', 'data'],
  approvals: ['web/v1.0/http-request', 'data/*', '*/*/delete'],
  variables: { company: 'Harbour' },
  tool_rules: [
    {
      tools: 'web/*',
      when: '$contains(arguments.url, "internal")',
      then: 'refuse',
      message: 'No.',
    },
    { tools: '*', then: 'ask' },
  ],
  guards: [],
  agents: [],
  metadata: { team: 'care', nested: { deep: [1, null, 'x'] }, '': '' },
};
const defaults = {
  description: '',
  status: 'active',
  instructions: '',
  model: null,
  variables: {},
  model_settings: null,
  fallback_models: [],
  memory: 'user',
  recall: null,
  profile: null,
  memory_formation: null,
  priority: null,
  max_concurrency: null,
  keep_prompts: false,
  version: 1,
  skills: [],
  approvals: [],
  tool_rules: [],
  guards: [],
  agents: [],
  metadata: {},
  created_at: aTimestamp,
  updated_at: aTimestamp,
};

describe('POST /api/agents', () => {
  test('answers 201 with the agent, and Location', async () => {
    const tenant = await newTenant(platform);

    const { status, body, headers } = await tenant.post('/api/agents', full);

    expect(status).toBe(201);
    expect(body).toEqual({ ...full, version: 1, created_at: aTimestamp, updated_at: aTimestamp });
    expect(headers.get('location')).toBe('/api/agents/support');
    expect((await tenant.get('/api/agents/support')).body).toEqual(body);
  });

  test('everything has a default, the id is generated', async () => {
    const tenant = await newTenant(platform);

    const first = await tenant.post('/api/agents', {});
    const second = await tenant.post('/api/agents', {});

    expect(first.body).toEqual({
      ...defaults,
      id: expect.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/),
      name: expect.any(String),
    });
    expect(second.body.id).not.toBe(first.body.id);
    expect((await tenant.get(`/api/agents/${first.body.id}`)).status).toBe(200);
  });

  test('an id is unique in its organization: 409 conflict', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'one', name: 'First' });

    expectRefusal(await tenant.post('/api/agents', { id: 'one' }), 409, 'conflict');
    expectRefusal(await tenant.post('/api/agents', { id: 'default' }), 409, 'conflict');
    expect((await tenant.get('/api/agents/one')).body.name).toBe('First');
  });

  test('50 of one id at once are one agent', async () => {
    const tenant = await newTenant(platform);

    const answers = await Promise.all(
      Array.from({ length: 50 }, () => tenant.post('/api/agents', { id: 'one' })),
    );

    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(49);
    expect((await tenant.get('/api/agents')).body.total).toBe(2);
  });

  const wrong: [string, unknown[]][] = [
    ['id', ['', 'A', 'a_b', '-a', 'a b', 'é', 'a/b', '.', 'a'.repeat(64), 1, null, ['a'], {}]],
    ['name', ['', 1, null, [], {}, 'x'.repeat(201), 'x'.repeat(1_000_000)]],
    ['description', [1, null, [], 'x'.repeat(kibibytes64 + 1), '🏔'.repeat(16_385)]],
    ['status', ['', 'Active', 'stopped', null, true, 1]],
    ['instructions', [1, null, [], 'x'.repeat(kibibytes64 + 1), '🏔'.repeat(16_385)]],
    ['model', ['', 'gpt', '/gpt', 'openai/', 'open ai/gpt', 1, [], `a/${'x'.repeat(200)}`]],
    ['model_settings', ['', 1, []]],
    ['model_settings.max_tokens', [{ max_tokens: 9 }]],
    ['model_settings.max_output_tokens', [{ max_output_tokens: 15 }, { max_output_tokens: 1.5 }]],
    ['model_settings.temperature', [{ temperature: -0.1 }, { temperature: 2.1 }]],
    ['model_settings.effort', [{ effort: 'huge' }, { effort: 1 }]],
    ['model_settings.timeout_ms', [{ timeout_ms: 99 }, { timeout_ms: 21_600_001 }]],
    ['model_settings.first_byte_timeout_ms', [{ first_byte_timeout_ms: 3_600_001 }]],
    ['model_settings.context_tokens', [{ context_tokens: 1_999 }]],
    ...(['skills', 'approvals'] as const).flatMap((field): [string, unknown[]][] => [
      [
        field,
        ['web/*', null, {}, ['web/*', 'web/*'], Array.from({ length: 201 }, (_, i) => `c${i}`)],
      ],
      [
        `${field}.0`,
        [[''], [1], [null], ['Web/*'], ['web/**'], ['web//x'], ['web/1.0/x'], ['/'], ['a/b/c/d']],
      ],
    ]),
    ['metadata', ['{}', null, [], 1, { a: 'x'.repeat(kibibytes64) }, { a: '🏔'.repeat(16_384) }]],
  ];

  test.each(wrong)('%s of a wrong type or size is refused and named', async (field, values) => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'one' });
    const name = field.split('.')[0] as string;

    for (const value of values) {
      expectInvalid(await tenant.post('/api/agents', { [name]: value }), field);
      if (name === 'id') continue;
      expectInvalid(await tenant.put('/api/agents/one', { [name]: value }), field);
    }
    expect((await tenant.get('/api/agents')).body.total).toBe(2);
  });

  test('values of the maximum length are accepted', async () => {
    const tenant = await newTenant(platform);
    const longest = {
      id: 'a'.repeat(63),
      name: '🏔'.repeat(200),
      description: '🏔'.repeat(16_384),
      instructions: 'x'.repeat(kibibytes64),
      metadata: { a: 'x'.repeat(kibibytes64 - '{"a":""}'.length) },
      skills: Array.from({ length: 200 }, (_, i) => `c${i}/*`),
      approvals: Array.from({ length: 200 }, (_, i) => `c${i}/*`),
    };

    const { status, body } = await tenant.post('/api/agents', longest);

    expect(status).toBe(201);
    expect(body).toMatchObject(longest);
  });

  test.each(['created_at', 'updated_at', 'organization_id', 'foo', 'ID', 'toString'])(
    'an unknown field is refused and named: %s',
    async (field) => {
      const tenant = await newTenant(platform);

      expectInvalid(await tenant.post('/api/agents', { [field]: 'x' }), field);
      expectInvalid(await tenant.put('/api/agents/default', { [field]: 'x' }), field);
    },
  );
});

describe('GET /api/agents', () => {
  test('is {data, total, limit, offset}, newest first', async () => {
    const tenant = await newTenant(platform);
    for (const id of ['b', 'c', 'a']) {
      clock.advance(1);
      await tenant.post('/api/agents', { id });
    }
    const page = async (query: string) => {
      const { status, body } = await tenant.get(`/api/agents${query}`);
      expect(status).toBe(200);
      const { data, ...rest } = body;
      return [...data.map(({ id }: { id: string }) => id), rest];
    };

    expect(await page('')).toEqual(['a', 'c', 'b', 'default', { total: 4, limit: 50, offset: 0 }]);
    expect(await page('?limit=2&offset=1')).toEqual([
      ...['c', 'b', { total: 4, limit: 2, offset: 1 }],
    ]);
    expect(await page('?limit=200&offset=4')).toEqual([{ total: 4, limit: 200, offset: 4 }]);
  });

  test.each([...hostileLimits, 'limit=201'])('%s is 400', async (query) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get(`/api/agents?${query}`), 'limit');
  });

  test.each(hostileOffsets)('%s is 400', async (query) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get(`/api/agents?${query}`), 'offset');
  });
});

describe('GET /api/agents/:agentId', () => {
  test('every organization starts with an active agent default', async () => {
    const tenant = await newTenant(platform);

    const { status, body } = await tenant.get('/api/agents/default');

    expect(status).toBe(200);
    expect(body).toEqual({ ...defaults, id: 'default', name: expect.any(String) });
  });

  test('an unknown one is 404 not_found', async () => {
    const tenant = await newTenant(platform);

    for (const id of [
      'nobody',
      'Default',
      'default%20',
      '%20',
      '*',
      '%25',
      "'",
      'x'.repeat(5_000),
    ]) {
      expectRefusal(await tenant.get(`/api/agents/${id}`), 404, 'not_found');
    }
  });
});

describe('PUT /api/agents/:agentId', () => {
  test('changes only the given fields, and refreshes updated_at', async () => {
    const tenant = await newTenant(platform);
    const { body: before } = await tenant.post('/api/agents', full);
    clock.advance(1_000);

    const { status, body } = await tenant.put('/api/agents/support', { name: 'Other' });

    expect(status).toBe(200);
    expect(body).toEqual({ ...before, name: 'Other', updated_at: aTimestamp });
    expect(Date.parse(body.updated_at)).toBe(Date.parse(before.updated_at) + 1_000);
    expect((await tenant.get('/api/agents/support')).body).toEqual(body);
  });

  test('metadata is replaced as a whole; model may be null', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', full);

    const changes = {
      metadata: { new: true },
      skills: [],
      approvals: [],
      agents: [],
      model: null,
      description: '',
    };
    const { body } = await tenant.put('/api/agents/support', changes);

    expect(body).toMatchObject(changes);
    expect(body.metadata).toEqual({ new: true });
  });

  test('{} changes nothing', async () => {
    const tenant = await newTenant(platform);
    const { body: before } = await tenant.post('/api/agents', full);
    clock.advance(1_000);

    const { status, body } = await tenant.put('/api/agents/support', {});

    expect({ status, body }).toEqual({ status: 200, body: before });
  });

  test('the id cannot be changed', async () => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.put('/api/agents/default', { id: 'other' }), 'id');
    expectInvalid(await tenant.put('/api/agents/default', { id: 'default' }), 'id');
  });

  test('a body is needed, and it is an object', async () => {
    const tenant = await newTenant(platform);

    for (const body of [undefined, '', '[]', 'null', '"x"', '1']) {
      expectRefusal(await tenant.put('/api/agents/default', body), 400, 'validation_error');
    }
  });

  test('an unknown one is 404 not_found, and is not made', async () => {
    const tenant = await newTenant(platform);

    expectRefusal(await tenant.put('/api/agents/nobody', { name: 'x' }), 404, 'not_found');
    expect((await tenant.get('/api/agents')).body.total).toBe(1);
  });

  test('pausing and resuming send one event each; setting the same status sends none', async () => {
    const tenant = await newTenant(platform);
    await recordEvents(platform.database, tenant.organization);
    for (const status of ['paused', 'paused', 'active', 'active'] as const) {
      await tenant.put('/api/agents/default', { status });
    }
    await tenant.put('/api/agents/default', { name: 'x' });

    const rows = await platform.database.read.kysely
      .selectFrom('events')
      .select(['agent_id', 'data'])
      .where('organization_id', '=', tenant.organization)
      .where('type', '=', 'agent.status_changed')
      .orderBy('seq')
      .execute();

    expect(rows.map(({ agent_id, data }) => ({ agent_id, data: JSON.parse(data) }))).toEqual([
      { agent_id: 'default', data: { previous_status: 'active', status: 'paused' } },
      { agent_id: 'default', data: { previous_status: 'paused', status: 'active' } },
    ]);
  });
});

describe('DELETE /api/agents/:agentId', () => {
  test('answers 204 with an empty body, and the agent no longer exists', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'one' });

    const answer = await tenant.delete('/api/agents/one');

    expect({ status: answer.status, text: answer.text }).toEqual({ status: 204, text: '' });
    expect(answer.headers.get('content-type')).toBeNull();
    expectRefusal(await tenant.get('/api/agents/one'), 404, 'not_found');
    expectRefusal(await tenant.delete('/api/agents/one'), 404, 'not_found');
    expect((await tenant.get('/api/agents')).body.total).toBe(1);
  });

  test('its id may be taken again, and its conversations stay', async () => {
    const tenant = await newTenant(platform);
    const { body } = await tenant.run('util/v1.0/echo', { text: 'x' });
    await tenant.delete('/api/agents/default');

    expect((await tenant.get(`/api/conversations/${body.conversation_id}`)).status).toBe(200);
    expect((await tenant.post('/api/agents', { id: 'default' })).status).toBe(201);
    expect((await tenant.run('util/v1.0/echo', { text: 'x' })).status).toBe(200);
  });
});
