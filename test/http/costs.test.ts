import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { expectInvalid } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import { anthropicCache } from '../support/prompt-cache.ts';
import { answering, inTurn } from '../support/scripted-provider.ts';
import { newThinker, startThinkers, type Thinkers, toolNamed } from '../support/thinkers.ts';

/** Dollars for a million tokens. */
const prices = [
  {
    model: 'openai/test',
    from: '2020-01-01',
    input: 2,
    cache_read: 0.5,
    output: 10,
    reasoning: 20,
  },
  {
    model: 'anthropic/test',
    from: '2020-01-01',
    input: 3,
    cache_read: 0.3,
    cache_write: 3.75,
    output: 15,
  },
];
const environment = { MODEL_PRICES: JSON.stringify(prices) };

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers({ environment });
});
afterAll(() => world.stop());

const counting = { name: toolNamed('text/v1.0/word-count'), input: { text: 'one two' } };

test('a job’s cost is that of its calls, in its steps, its conversation, its usage and the metrics', async () => {
  const thinker = await newThinker(world.platform, { skills: ['text/*'] });
  world.provider.script(
    inTurn(
      {
        toolCalls: [counting],
        usage: { prompt: 1_000, completion: 100, cacheRead: 800, reasoning: 40 },
      },
      { text: 'Two.', usage: { prompt: 1_200, completion: 10 } },
    ),
  );
  const costOf = async () =>
    Number(
      /^service_model_cost_usd_total (\S+)$/m.exec(
        (await world.platform.request('GET', '/metrics')).text,
      )?.[1],
    );
  const before = await costOf();

  const job = await thinker.task('Count');

  // 200 × 2 + 800 × 0.5 + 60 × 10 + 40 × 20, and 1,200 × 2 + 10 × 10, of a million each.
  const [first, second] = [0.0022, 0.0025];
  const stats = {
    ...{ prompt_tokens: 2_200, completion_tokens: 110, total_tokens: 2_310 },
    ...{ cache_read_tokens: 800, cache_write_tokens: 0, reasoning_tokens: 40 },
    ...{ tokens_are_partial: false, cost_usd: 0.0047, cost_is_partial: false },
  };
  expect(job.token_stats).toEqual(stats);
  const conversation = await thinker.get(`/api/conversations/${job.conversation_id}`);
  expect(conversation.body.token_stats).toEqual(stats);
  const { breakdown, ...totals } = await thinker.tokens(job.conversation_id);
  expect(totals).toEqual({ conversation_id: job.conversation_id, ...stats });
  expect(breakdown).toMatchObject([
    { cost_usd: 0 },
    { cost_usd: first, cache_read_tokens: 800, reasoning_tokens: 40 },
    { cost_usd: 0 },
    { cost_usd: second },
  ]);
  expect(await thinker.steps(job.job_id)).toMatchObject([
    {
      cost_usd: first,
      cache_read_tokens: 800,
      price: { from: '2020-01-01', source: 'operator', input: 2, reasoning: 20 },
    },
    { kind: 'tool', cost_usd: null, price: null },
    { cost_usd: second, cache_read_tokens: null },
  ]);
  const { body: usage } = await thinker.get('/api/agents/thinker/usage');
  expect(usage.today).toMatchObject({ used_usd: 0.0047, reserved_usd: 0, cost_is_partial: false });
  expect(usage.days).toMatchObject([
    { cost_usd: 0.0047, cache_read_tokens: 800, unpriced_calls: 0 },
  ]);
  const path = `/admin/usage?organization_id=${thinker.organization}`;
  const { body: all } = await world.platform.admin('GET', path);
  const kinds = all.data.map(({ owner_kind }: { owner_kind: string }) => owner_kind);
  expect(kinds).toEqual(['agent', 'api_key', 'skill', 'user']);
  for (const line of all.data) expect(line).toMatchObject({ cost_usd: 0.0047, calls: 2 });
  const skill = await world.platform.admin(
    'GET',
    `${path}&owner_kind=skill&owner_id=agent/v1.0/run-task`,
  );
  expect(skill.body.total).toBe(1);
  expect((await costOf()) - before).toBeCloseTo(0.0047, 9);
});

test('a loop with a cache costs less than a quarter of what it costs without', async () => {
  const instructions = 'Count the words of each text that you find. '.repeat(150);
  const fields = { model: 'anthropic/test', skills: ['text/*'], instructions };
  const costOf = async (isCached: boolean) => {
    const { task } = await newThinker(world.platform, fields);
    const count = anthropicCache();
    world.provider.script((request) => {
      const turn = request.messages.filter(({ role }) => role === 'assistant').length + 1;
      const { prompt, ...cached } = count(request);
      const usage = { prompt, completion: 5, ...(isCached ? cached : {}) };
      return turn === 20 ? { text: 'Done.', usage } : { toolCalls: [counting], usage };
    });
    return (await task('Count')).token_stats.cost_usd;
  };

  const [cached, whole] = [await costOf(true), await costOf(false)];

  expect(cached).toBeGreaterThan(0);
  expect(cached).toBeLessThan(whole / 4);
});

test('what was not reported makes the cost of the day partial, and that of today alike', async () => {
  const thinker = await newThinker(world.platform);
  world.provider.script(
    inTurn({ text: 'Yes.', usage: { prompt: 100, completion: 10 } }, { text: 'No.', usage: null }),
  );
  await thinker.task('Is it?');
  const whole = (await thinker.get('/api/agents/thinker/usage')).body;
  await thinker.task('And now?');

  const { today, month, days } = (await thinker.get('/api/agents/thinker/usage')).body;

  expect([whole.today, whole.days[0]]).toMatchObject([
    { cost_is_partial: false },
    { cost_is_partial: false },
  ]);
  expect([today, month, days[0]]).toMatchObject([
    { cost_is_partial: true },
    { cost_is_partial: true },
    { cost_is_partial: true, unreported_calls: 1, unpriced_calls: 0 },
  ]);
});

test('a provider that counts more than was reserved is charged for, and the stream says so', async () => {
  const thinker = await newThinker(world.platform, { model: 'openai/surprising' });
  await thinker.put('/api/agents/thinker/budget', { tokens_per_day: 3_000 });
  world.provider.script(answering('Yes.', { usage: { prompt: 3_900, completion: 100 } }));

  const job = await thinker.task('Is it?');

  expect(job.status).toBe('completed');
  const { today } = (await thinker.get('/api/agents/thinker/usage')).body;
  expect(today).toMatchObject({ used: 4_000, reserved: 0, limit: 3_000, left: 0 });
  const events = await (await thinker.follow(job.job_id)).ended;
  expect(events.filter(({ event }) => event === 'log').map(({ data }) => data.message)).toEqual([
    'openai/surprising counted 4000 tokens, and 3000 were reserved: budgets may be exceeded by the difference',
  ]);
  expect(await thinker.task('And now?')).toMatchObject({ error: { code: 'budget_exceeded' } });
});

test('a skill is told what its request has cost, with all turns and what is not known', async () => {
  const { asking, put } = await newThinker(world.platform, { skills: ['text/*'] });
  const reply = { text: 'Two.', usage: { prompt: 1_000, completion: 100 } };
  const script = () =>
    inTurn(
      { toolCalls: [counting], usage: { prompt: 1_000, completion: 100 } },
      reply,
      { ...reply, usage: null },
      reply,
    );
  const requests = [{ prompt: 'Count', tools: true }, { prompt: 'And now?' }];
  const usagesOf = async () => {
    world.provider.script(script());
    const job = await asking(requests);
    return job.output.map(({ usage }: { usage: object }) => usage);
  };

  expect(await usagesOf()).toMatchObject([
    { total_tokens: 2_200, cost_usd: 0.006, cost_is_partial: false },
    { total_tokens: null, cost_usd: null, cost_is_partial: true },
  ]);
  await put('/api/agents/thinker', { model: 'openai/other' });
  expect(await usagesOf()).toMatchObject([
    { total_tokens: 2_200, cost_usd: null, cost_is_partial: true },
    { cost_usd: null, cost_is_partial: true },
  ]);
});

describe('a model without a price', () => {
  test('has an unknown cost, and sums with it say that they are partial', async () => {
    const thinker = await newThinker(world.platform, { model: 'openai/other' });
    world.provider.script(answering('Yes.', { usage: { prompt: 10, completion: 5 } }));
    const job = await thinker.task('Is it?');
    await thinker.put('/api/agents/thinker', { model: 'openai/test' });
    const second = await thinker.task('Is it?', {}, { 'x-conversation-id': job.conversation_id });

    const unknown = { cost_usd: null, cost_is_partial: true, tokens_are_partial: false };
    expect(job.token_stats).toMatchObject(unknown);
    expect(second.token_stats).toMatchObject({ cost_usd: 0.00007, cost_is_partial: false });
    const { body } = await thinker.get(`/api/conversations/${job.conversation_id}`);
    expect(body.token_stats).toMatchObject({ cost_usd: 0.00007, cost_is_partial: true });
    const { days, today } = (await thinker.get('/api/agents/thinker/usage')).body;
    expect(days).toMatchObject([{ cost_usd: 0.00007, cost_is_partial: true, unpriced_calls: 1 }]);
    expect(today).toMatchObject({ used_usd: 0.00007, cost_is_partial: true });
  });

  test('is refused under a budget in money, and allowed under one in tokens', async () => {
    const thinker = await newThinker(world.platform, { model: 'openai/other' });
    world.provider.script(answering('Yes.'));
    await thinker.put('/api/agents/thinker/budget', { usd_per_month: 5 });

    expect(await thinker.task('Is it?')).toMatchObject({
      status: 'failed',
      error: {
        code: 'budget_exceeded',
        message: expect.stringMatching(/the price of the model openai\/other is not known/),
      },
    });
    await thinker.put('/api/agents/thinker/budget', { tokens_per_month: 100_000 });
    expect(await thinker.task('Is it?')).toMatchObject({ status: 'completed' });
  });
});

describe('a budget in money', () => {
  const path = '/api/agents/thinker/budget';

  test('is shown as it was set', async () => {
    const thinker = await newThinker(world.platform);

    const { status, body } = await thinker.put(path, {
      usd_per_day: 0.25,
      usd_per_month: 4.000000001,
    });

    expect(status).toBe(200);
    const limits = { tokens_per_day: null, usd_per_day: 0.25, usd_per_month: 4.000000001 };
    expect(body).toMatchObject(limits);
    expect((await thinker.get(path)).body).toMatchObject(limits);
  });

  test.each([0, -1, 1_000_001, '5'])('of %j is refused', async (usd) => {
    const thinker = await newThinker(world.platform);

    expectInvalid(await thinker.put(path, { usd_per_day: usd }), 'usd_per_day');
  });

  test('that is used up fails the next job before anything is spent', async () => {
    const thinker = await newThinker(world.platform);
    world.provider.script(answering('Yes.', { usage: { prompt: 1_000, completion: 100 } }));
    await thinker.put(path, { usd_per_day: 0.05 });
    expect(await thinker.task('Is it?')).toMatchObject({ status: 'completed' });
    await thinker.put(path, { usd_per_day: 0.003 });
    const before = world.provider.requests.length;

    const job = await thinker.task('Is it?');

    expect(job).toMatchObject({
      status: 'failed',
      error: {
        code: 'budget_exceeded',
        message: expect.stringMatching(/^The agent thinker has used \$0\.003 of its \$0\.003 for /),
      },
    });
    expect(world.provider.requests).toHaveLength(before);
  });

  test('of many jobs at once is never exceeded', async () => {
    const thinker = await newThinker(world.platform);
    // No more tokens than a first call reserves for its prompt, and than its answer may have.
    world.provider.script(answering('Yes.', { usage: { prompt: 15, completion: 16 } }));
    // A call costs 0.00019 dollars, and reserves some more.
    await thinker.put(path, { usd_per_day: 0.0026 });
    const requests = [{ prompt: 'Is it so?', maxOutputTokens: 16 }];
    const start = () => thinker.start('thinking/v1.0/asks', { requests }, thinker.named);

    const ids = await Promise.all(Array.from({ length: 20 }, start));
    const jobs = await Promise.all(ids.map((id) => thinker.jobIn(id, 'completed', 'failed')));

    const completed = jobs.filter(({ body }) => body.status === 'completed').length;
    const { today } = (await thinker.get('/api/agents/thinker/usage')).body;
    expect(today).toMatchObject({ reserved_usd: 0, used_usd: (completed * 19) / 100_000 });
    expect(today.used_usd).toBeLessThanOrEqual(0.0026);
    expect(completed).toBeGreaterThan(8);
    expect(completed).toBeLessThan(20);
  });
});

test('a price counts from its first day on, and does not change what was spent before', async () => {
  const [price] = prices;
  const dearer = { ...price, from: '2026-11-22', input: 900, output: 900 };
  const clock = manualClock('2026-11-21T23:59:00.000Z');
  const dated = await startThinkers({
    clock,
    environment: { MODEL_PRICES: JSON.stringify([price, dearer]) },
  });
  onTestFinished(() => dated.stop());
  const thinker = await newThinker(dated.platform);
  dated.provider.script(answering('Yes.', { usage: { prompt: 100, completion: 10 } }));
  const job = await thinker.task('Is it?');

  clock.advance(60_000);
  const later = await thinker.task('Is it?');

  expect(later.token_stats.cost_usd).toBe(0.099);
  expect(job.token_stats.cost_usd).toBe(0.0003);
  expect((await thinker.get(`/api/jobs/${job.job_id}`)).body.token_stats).toEqual(job.token_stats);
  const { days } = (await thinker.get('/api/agents/thinker/usage')).body;
  expect(days).toMatchObject([{ cost_usd: 0.099 }, { cost_usd: 0.0003 }]);
});
