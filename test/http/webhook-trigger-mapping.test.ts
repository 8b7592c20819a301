import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRateLimitHeaders } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Answer, Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock: manualClock() });
});
afterAll(() => platform.stop());

/** Calls a trigger with this mapping, and says what it made of it. */
async function mapped(
  mapping: string | null,
  {
    body = {} as unknown,
    headers = {} as Record<string, string>,
    query = '',
    fields = {} as Record<string, unknown>,
  } = {},
): Promise<{ answer: Answer; input: unknown; tenant: Tenant }> {
  const tenant = await newTenant(platform);
  const created = await tenant.post('/api/agent-triggers', {
    agent_id: 'default',
    name: 'x',
    skill_category: 'staged',
    skill_name: 'any',
    mapping,
    ...fields,
  });
  expect(created.text).toMatch(/"token"/);
  const path = `/api/webhooks/agent/${created.body.token}${query}`;
  const answer = await platform.request('POST', path, { body, headers });
  const job = answer.status === 202 ? await tenant.get(`/api/jobs/${answer.body.job_id}`) : null;
  return { answer, input: job?.body.input, tenant };
}

describe('a mapping makes the input', () => {
  test('of body, headers and query', async () => {
    const { input } = await mapped(
      '{"ref": body.ref, "event": headers."x-github-event", "team": query.team, "tags": query.tag}',
      {
        body: { ref: 'main' },
        headers: { 'X-GitHub-Event': 'push' },
        query: '?team=care%20%F0%9F%8F%94&tag=a&tag=b',
      },
    );

    expect(input).toEqual({ ref: 'main', event: 'push', team: 'care 🏔', tags: ['a', 'b'] });
  });

  test('and sees no header that holds credentials', async () => {
    const headers = {
      authorization: 'Bearer hidden',
      cookie: 'a=hidden',
      'proxy-authorization': 'Basic hidden',
      'webhook-signature': 'v1,hidden',
      'x-api-key': 'hidden',
      'x-hub-signature': 'sha1=hidden',
      'x-hub-signature-256': 'sha256=hidden',
      'x-admin-secret': 'hidden',
      'x-gitlab-token': 'hidden',
      'x-slack-signature': 'hidden',
      'x-goog-channel-token': 'hidden',
      'X-Shopify-Hmac-SHA256': 'hidden',
      'x-telegram-bot-api-secret-token': 'hidden',
      'x-shared-secret': 'hidden',
      'x-shown': 'shown',
    };

    const { input } = await mapped('{"headers": headers}', { headers });

    expect(JSON.stringify(input)).not.toContain('hidden');
    expect(input).toMatchObject({ headers: { 'x-shown': 'shown' } });
  });

  test('merged over the input of the trigger', async () => {
    const fields = { input: { a: { x: 1 }, b: 'own' } };

    const { input } = await mapped('{"a": {"y": 2}, "c": null}', { fields });

    expect(input).toEqual({ a: { y: 2 }, b: 'own', c: null });
  });

  test('of a query without prototype names', async () => {
    const { input } = await mapped('{"names": $keys(query), "proto": query."__proto__"."x"}', {
      query: '?__proto__=x&constructor=y&toString=z',
    });

    expect(input).toMatchObject({ names: expect.arrayContaining(['constructor', 'toString']) });
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });

  test.each(['%FF', '%00', '%'])('a query that cannot be read is 400: %s', async (text) => {
    const { answer } = await mapped(null, { query: `?team=${text}` });

    expectInvalid(answer, 'team');
  });
});

describe('a mapping that gives no object', () => {
  test.each(['1', '"x"', '[{"a": 1}, 2]', 'null', 'true', 'body.nowhere', '{"f": $sum}', '1/0'])(
    'is 400 on the field mapping: %s',
    async (mapping) => {
      const { answer, tenant } = await mapped(mapping, { fields: { skill_name: 'order' } });

      expectInvalid(answer, 'mapping');
      expectRateLimitHeaders(answer);
      expect((await tenant.get('/api/jobs')).body.total).toBe(0);
    },
  );

  test.each([
    ['shout', '"a " & body.text', 'a text'],
    ['sum', '[1, 2, 3]', [1, 2, 3]],
    ['any', '1', 1],
  ])('is taken by a skill that takes it: %s', async (skill_name, mapping, input) => {
    const body = { text: 'text' };

    expect((await mapped(mapping, { body, fields: { skill_name } })).input).toEqual(input);
    const fields = { skill_name, input: { own: true } };
    expectInvalid((await mapped(mapping, { body, fields })).answer, 'mapping');
  });
});

test('the result of a mapping is checked by the schema of the skill', async () => {
  const fields = { skill_name: 'order' };

  const { answer } = await mapped('{"item": {"name": 5}, "count": 1}', { fields });

  expectInvalid(answer, 'item.name');
});

/** The answer to a call whose mapping asks for too much: 503 while a busy machine gives it too little time. */
async function decided(mapping: string): Promise<Answer> {
  const { answer } = await mapped(mapping, { body: { text: `${'a'.repeat(60)}!` } });
  return answer.status === 503 ? await decided(mapping) : answer;
}

test.each([
  ['a loop without end', '($f := function() { $f() }; $f())'],
  ['a regular expression that backtracks for ever', '$match(body.text, /^(a+)+$/)'],
  ['an allocation of 500 MB', '$pad("x", 500000000)'],
  ['a list of ten million', '$join([1..9999999].$string())'],
  ['a call of itself without end', '($f := function($x) { $f($x) + 1 }; $f(1))'],
  ['an error', '$error("not for us")'],
])('%s is 400, /health answers meanwhile, and the next call is fine', async (_title, mapping) => {
  const bad = decided(mapping);
  let isOver = false;
  void bad.finally(() => {
    isOver = true;
  });
  let slowest = 0;
  const statuses = new Set<number>();
  // With a pause between the looks, which would otherwise take the processor from the mapping.
  await waitFor(
    async () => {
      const begun = performance.now();
      statuses.add((await platform.request('GET', '/health')).status);
      slowest = Math.max(slowest, performance.now() - begun);
      return isOver;
    },
    { describe: 'the mapping is over', everyMs: 20, deadlineMs: 50_000 },
  );

  expectInvalid(await bad, 'mapping');
  expect([...statuses]).toEqual([200]);
  expect(slowest).toBeLessThan(5_000);
  expect((await mapped('{"a": body.a}', { body: { a: 1 } })).input).toEqual({ a: 1 });
});

test('100 calls at once are each answered with their own input', async () => {
  const tenant = await newTenant(platform);
  const { body } = await tenant.post('/api/agent-triggers', {
    ...{ agent_id: 'default', name: 'x', skill_category: 'staged', skill_name: 'any' },
    ...{ mapping: '{"square": body.n * body.n}', rate_limit: 1_000 },
  });

  const answers = await Promise.all(
    Array.from({ length: 100 }, async (_, n) => {
      const options = { body: { n } };
      const answer = await platform.request('POST', `/api/webhooks/agent/${body.token}`, options);
      return (await tenant.get(`/api/jobs/${answer.body.job_id}`)).body.input;
    }),
  );

  expect(answers).toEqual(Array.from({ length: 100 }, (_, n) => ({ square: n * n })));
});
