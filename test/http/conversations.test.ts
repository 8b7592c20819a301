import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noTokenSums } from '../../src/adapters/http/schemas.ts';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { hostileLimits, hostileOffsets } from '../support/hostile-pages.ts';
import type { Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const echo = 'util/v1.0/echo';
const randomId = '0198c0de-0000-7000-8000-000000000000';
const failing = acting({ fail: { message: 'no', retryable: false } });

/** A conversation of four messages. */
async function talk(tenant: Tenant): Promise<string> {
  const input = acting(
    { message: ['system', 'be brief'] },
    { message: ['tool', 'a tool said this'] },
    { message: ['assistant', 'thinking aloud'] },
  );
  const { body } = await tenant.run(play, { ...input, output: { done: true } });
  return body.conversation_id;
}

/** Conversations of `n` runs, newest first. */
async function conversations(tenant: Tenant, n: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < n; i++) {
    const { body } = await tenant.post(`/api/${echo}`, { text: `${i}` });
    ids.unshift(body.conversation_id);
  }
  return ids;
}

const idsOf = (body: { id: string }[]) => body.map(({ id }) => id);

describe('a conversation', () => {
  test('is made as the job is accepted, active, and has the user message already', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const input = acting({ until: end.path });
    const { body: job } = await tenant.post(`/api/${play}`, input);

    const { body } = await tenant.get(`/api/conversations/${job.conversation_id}`);
    const messages = await tenant.get(`/api/conversations/${job.conversation_id}/messages`);

    expect(body.status).toBe('active');
    expect(messages.body).toMatchObject([{ role: 'user' }]);
    expect(JSON.parse(messages.body[0].content)).toEqual(input);
  });

  test('ends as the job does: completed, or failed', async () => {
    const tenant = await newTenant(platform);
    const statusAfter = async (input: object) => {
      const { body: job } = await tenant.run(play, input);
      const { body } = await tenant.get(`/api/conversations/${job.conversation_id}`);
      expect(Date.parse(body.updated_at)).toBeGreaterThanOrEqual(Date.parse(body.created_at));
      return body.status;
    };

    expect(await statusAfter(acting())).toBe('completed');
    expect(await statusAfter(failing)).toBe('failed');
  });

  test('there is one for each job', async () => {
    const tenant = await newTenant(platform);

    expect(new Set(await conversations(tenant, 10)).size).toBe(10);
  });
});

describe('GET /api/conversations', () => {
  test('is an array with the documented fields, without token_stats', async () => {
    const tenant = await newTenant(platform, { client_name: 'ada' });
    await talk(tenant);

    const { status, body, headers } = await tenant.get('/api/conversations');

    expect(status).toBe(200);
    expect(body).toEqual([
      {
        id: anId,
        agent_id: 'default',
        user_id: 'ada',
        status: 'completed',
        trigger_type: 'api',
        created_at: aTimestamp,
        updated_at: aTimestamp,
      },
    ]);
    expect(headers.get('x-total-count')).toBe('1');
  });

  test('is newest first, 50 by default and 200 at most, with X-Total-Count of all', async () => {
    const tenant = await newTenant(platform);
    const ids = await conversations(tenant, 205);
    const page = async (query: string) => {
      const { body, headers } = await tenant.get(`/api/conversations${query}`);
      expect(headers.get('x-total-count')).toBe('205');
      return idsOf(body);
    };

    expect(await page('')).toEqual(ids.slice(0, 50));
    expect(await page('?limit=200')).toEqual(ids.slice(0, 200));
    expect(await page('?limit=1')).toEqual(ids.slice(0, 1));
    expect(await page('?limit=10&offset=200')).toEqual(ids.slice(200));
    expect(await page('?offset=204')).toEqual(ids.slice(204));
    expect(await page('?offset=205')).toEqual([]);
    expect(await page('?offset=2147483647')).toEqual([]);
  });

  test.each([...hostileLimits, 'limit=201', 'limit=501'])('%s is 400', async (query) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get(`/api/conversations?${query}`), 'limit');
  });

  test.each(hostileOffsets)('%s is 400', async (query) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get(`/api/conversations?${query}`), 'offset');
  });

  test('agent_id, user_id, status and trigger_type narrow it, alone and together', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'other' });
    const end = gate();
    const run = async (input: object, headers: Record<string, string>) =>
      (await tenant.run(play, input, headers)).body.conversation_id;
    const a = await run(acting(), { 'x-user-id': 'ada' });
    const b = await run(failing, { 'x-user-id': 'ada', 'x-agent-id': 'other' });
    const c = await run(acting(), { 'x-user-id': 'bob', 'x-agent-id': 'other' });
    const waiting = await tenant.post(`/api/${play}`, acting({ until: end.path }));
    const d = waiting.body.conversation_id;
    const filtered = async (query: string) => {
      const { body, headers } = await tenant.get(`/api/conversations?${query}`);
      expect(headers.get('x-total-count')).toBe(String(body.length));
      return idsOf(body);
    };

    expect(await filtered('agent_id=other')).toEqual([c, b]);
    expect(await filtered('agent_id=default')).toEqual([d, a]);
    expect(await filtered('agent_id=nobody')).toEqual([]);
    expect(await filtered('user_id=ada')).toEqual([b, a]);
    expect(await filtered('user_id=Ada')).toEqual([]);
    expect(await filtered('status=completed')).toEqual([c, a]);
    expect(await filtered('status=failed')).toEqual([b]);
    expect(await filtered('status=active')).toEqual([d]);
    expect(await filtered('trigger_type=api')).toEqual([d, c, b, a]);
    expect(await filtered('trigger_type=scheduled')).toEqual([]);
    expect(await filtered('trigger_type=webhook')).toEqual([]);
    expect(await filtered('user_id=ada&agent_id=other&status=failed&trigger_type=api')).toEqual([
      b,
    ]);
    expect(await filtered('user_id=ada&status=active')).toEqual([]);
  });

  test('a filter given twice or with a NUL is refused and named', async () => {
    const tenant = await newTenant(platform);

    for (const name of ['agent_id', 'user_id', 'status', 'trigger_type']) {
      expectInvalid(await tenant.get(`/api/conversations?${name}=api&${name}=api`), name);
      expectInvalid(await tenant.get(`/api/conversations?${name}=a%00`), name);
    }
  });

  test('include=opening adds the beginning of each; by default it is absent', async () => {
    const tenant = await newTenant(platform);
    await talk(tenant);
    await tenant.run(echo, { text: 'x'.repeat(300) });

    const { body } = await tenant.get('/api/conversations?include=opening');

    expect(body).toMatchObject([
      { opening: `{"text":"${'x'.repeat(191)}` },
      { opening: expect.stringMatching(/^\{"attempts":/) },
    ]);
    const plain = (await tenant.get('/api/conversations')).body;
    expect(plain).toEqual(body.map(({ opening: _, ...listed }: { opening: string }) => listed));
  });

  test.each(['', 'Opening', 'timing', 'opening&include=opening'])(
    'include=%s is 400 validation_error',
    async (value) => {
      const tenant = await newTenant(platform);

      expectInvalid(await tenant.get(`/api/conversations?include=${value}`), 'include');
    },
  );
});

describe('GET /api/conversations/:id', () => {
  test('has the documented fields, token_stats among them', async () => {
    const tenant = await newTenant(platform);
    const id = await talk(tenant);

    const { status, body } = await tenant.get(`/api/conversations/${id}`);

    expect(status).toBe(200);
    expect(body).toEqual({
      id,
      agent_id: 'default',
      user_id: 'a test',
      status: 'completed',
      trigger_type: 'api',
      ...noTokenSums,
      created_at: aTimestamp,
      updated_at: aTimestamp,
    });
  });
});

describe('GET /api/conversations/:id/messages', () => {
  test('is an array, oldest first: the input, the messages of the run, the output', async () => {
    const tenant = await newTenant(platform);
    const id = await talk(tenant);

    const { status, body, headers } = await tenant.get(`/api/conversations/${id}/messages`);

    expect(status).toBe(200);
    expect(body.map(({ role }: { role: string }) => role)).toEqual([
      ...['user', 'system', 'tool', 'assistant', 'assistant'],
    ]);
    for (const message of body) {
      expect(message).toEqual({
        id: anId,
        conversation_id: id,
        kind: 'message',
        model: null,
        role: expect.any(String),
        content: expect.any(String),
        created_at: aTimestamp,
      });
    }
    expect(body[1].content).toBe('be brief');
    expect(JSON.parse(body[4].content)).toEqual({ done: true });
    expect([...idsOf(body)].sort()).toEqual(idsOf(body));
    expect(headers.get('x-total-count')).toBe('5');
  });

  test('the message of a text is the text, not its JSON', async () => {
    const tenant = await newTenant(platform);
    const { body } = await tenant.run('staged/v1.0/shout', '"hé\\n\\"llo"');

    const messages = await tenant.get(`/api/conversations/${body.conversation_id}/messages`);

    expect(messages.body).toMatchObject([
      { role: 'user', content: 'hé\n"llo' },
      { role: 'assistant', content: 'HÉ\n"LLO' },
    ]);
  });

  test('a failed run has no answer, and messages of its failed attempts are not kept twice', async () => {
    const tenant = await newTenant(platform);
    const said = { message: ['assistant', 'once'] as const };
    const fail = { fail: { message: 'not yet' } };

    const good = await tenant.run(play, { attempts: [[said, fail], [said, fail], [said]] });
    const bad = await tenant.run(play, failing);

    const messages = async (id: string) =>
      (await tenant.get(`/api/conversations/${id}/messages`)).body;
    const kept = await messages(good.body.conversation_id);
    expect(kept.filter(({ content }: { content: string }) => content === 'once')).toHaveLength(1);
    expect(await messages(bad.body.conversation_id)).toMatchObject([{ role: 'user' }]);
  });

  test('role narrows it', async () => {
    const tenant = await newTenant(platform);
    const id = await talk(tenant);
    const count = async (role: string) => {
      const { body, headers } = await tenant.get(`/api/conversations/${id}/messages?role=${role}`);
      expect(headers.get('x-total-count')).toBe(String(body.length));
      for (const message of body) expect(message.role).toBe(role);
      return body.length;
    };

    expect(await count('user')).toBe(1);
    expect(await count('assistant')).toBe(2);
    expect(await count('system')).toBe(1);
    expect(await count('tool')).toBe(1);
  });

  test('limit is 100 by default and 500 at most; offset gives the next page', async () => {
    const tenant = await newTenant(platform);
    const lines = Array.from({ length: 520 }, (_, i) => ({ message: ['tool', `${i}`] as const }));
    const { body: job } = await tenant.run(play, acting(...lines));
    const page = async (query: string) => {
      const path = `/api/conversations/${job.conversation_id}/messages?role=tool${query}`;
      const { body, headers } = await tenant.get(path);
      return {
        total: Number(headers.get('x-total-count')),
        contents: body.map(({ content }: { content: string }) => Number(content)),
      };
    };
    const all = await page('&limit=500');
    const upTo = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => from + i);

    expect(all.contents).toEqual(upTo(0, Math.min(500, all.total)));
    expect((await page('')).contents).toEqual(upTo(0, 100));
    expect((await page('&limit=3&offset=100')).contents).toEqual([100, 101, 102]);
    expect((await page(`&offset=${all.total}`)).contents).toEqual([]);
  });

  test.each([...hostileLimits, 'limit=501'])('%s is 400', async (query) => {
    const tenant = await newTenant(platform);
    const [id] = await conversations(tenant, 1);

    expectInvalid(await tenant.get(`/api/conversations/${id}/messages?${query}`), 'limit');
  });

  test.each(hostileOffsets)('%s is 400', async (query) => {
    const tenant = await newTenant(platform);
    const [id] = await conversations(tenant, 1);

    expectInvalid(await tenant.get(`/api/conversations/${id}/messages?${query}`), 'offset');
  });

  test('a role given twice or with a NUL is refused and named', async () => {
    const tenant = await newTenant(platform);
    const [id] = await conversations(tenant, 1);

    for (const query of ['role=user&role=user', 'role=%00']) {
      expectInvalid(await tenant.get(`/api/conversations/${id}/messages?${query}`), 'role');
    }
  });
});

describe('GET /api/conversations/:id/token-usage', () => {
  test('has the totals and a breakdown with one entry for each message', async () => {
    const tenant = await newTenant(platform);
    const id = await talk(tenant);

    const { status, body } = await tenant.get(`/api/conversations/${id}/token-usage`);
    const messages = await tenant.get(`/api/conversations/${id}/messages`);

    expect(status).toBe(200);
    expect(body).toEqual({
      conversation_id: id,
      ...noTokenSums.token_stats,
      breakdown: messages.body.map(({ id: message_id, role }: { id: string; role: string }) => ({
        message_id,
        role,
        prompt_tokens: 0,
        completion_tokens: 0,
        cache_read_tokens: 0,
        cache_write_tokens: 0,
        reasoning_tokens: 0,
        cost_usd: 0,
      })),
    });
  });
});

test('an unknown conversation is 404 not_found, and so is an invalid id', async () => {
  const tenant = await newTenant(platform);
  const [id = ''] = await conversations(tenant, 1);

  for (const unknown of [randomId, 'x', '1', '%20', id.toUpperCase(), `${id}0`, '__proto__', '*']) {
    for (const path of ['', '/messages', '/token-usage', '/messages?limit=0']) {
      const answer = await tenant.get(`/api/conversations/${unknown}${path}`);
      expectRefusal(answer, 404, 'not_found');
    }
  }
});

test('conversations are read-only', async () => {
  const tenant = await newTenant(platform);
  const [id] = await conversations(tenant, 1);

  for (const path of ['', `/${id}`, `/${id}/messages`, `/${id}/token-usage`]) {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await tenant.send(method, `/api/conversations${path}`);
      expectRefusal(answer, 405, 'method_not_allowed');
      expect(answer.headers.get('allow')).toBe('GET, HEAD');
    }
  }
});
