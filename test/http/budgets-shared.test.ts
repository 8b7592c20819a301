/** A budget whose rest is small is shared: calls reserve less than their whole answers, and no answer is lost by that. */
import { expect, onTestFinished, test } from 'vitest';
import type { RecordedRequest, Reply, ScriptedRequest } from '../support/scripted-provider.ts';
import {
  asks,
  newThinker,
  startThinkers,
  type Thinker,
  type Thinkers,
  waitsForBudget,
} from '../support/thinkers.ts';

/** Dollars for a million tokens. */
const prices = [{ model: 'openai/test', from: '2020-01-01', input: 2, output: 20 }];
const wholeOutput = 8_000;
const environment = {
  MODEL_PRICES: JSON.stringify(prices),
  MODEL_OUTPUT_TOKENS: `${wholeOutput}`,
  RETRY_BACKOFF_MS: '10',
};

/** Stopped when the test ends. */
async function startWorld(): Promise<Thinkers> {
  const world = await startThinkers({ environment });
  onTestFinished(() => world.stop());
  return world;
}

/** Most tokens that the answer may have. */
const outputOf = ({ body }: ScriptedRequest): number =>
  body.max_tokens ?? body.max_completion_tokens;

const usdOf = ({ prompt, completion }: { prompt: number; completion: number }) =>
  (2 * prompt + 20 * completion) / 1_000_000;

const setBudget = (thinker: Thinker, budget: object) =>
  thinker.put('/api/agents/thinker/budget', budget);
const todayOf = async (thinker: Thinker) =>
  (await thinker.get('/api/agents/thinker/usage')).body.today;

/** Accepts a run with one request; its job's id. */
const ask = (thinker: Thinker, request: object = {}) =>
  thinker.start(asks, { requests: [{ prompt: 'Is it?', ...request }] }, thinker.named);

const ended = async (thinker: Thinker, id: string) =>
  (await thinker.jobIn(id, 'completed', 'failed')).body;

/** An answer of so many tokens, cut by the provider where the call's limit is lower. */
function answerOf(tokens: number, more: Reply = {}): (request: ScriptedRequest) => Reply {
  return (request) => {
    const most = outputOf(request);
    const isCut = most < tokens;
    const usage = { prompt: 10, completion: isCut ? most : tokens };
    return { text: isCut ? 'Half' : 'Whole.', finish: isCut ? 'length' : 'stop', usage, ...more };
  };
}

const underWay = (requests: readonly RecordedRequest[]) =>
  requests.filter(({ endedBy }) => endedBy === null);

test.each([
  ['in money', { usd_per_day: 0.19 }, 'used_usd'],
  ['in money, by month', { usd_per_month: 0.19 }, 'used_usd'],
  ['in tokens', { tokens_per_day: 9_500 }, 'used'],
])(
  'under a budget %s that holds one whole answer, five calls are under way at once',
  async (_, budget, used) => {
    const world = await startWorld();
    const thinker = await newThinker(world.platform);
    await setBudget(thinker, budget);
    const until = Promise.withResolvers<void>();
    const usage = { prompt: 10, completion: 5 };
    world.provider.script(() => ({ text: 'Yes.', usage, until: until.promise }));

    const ids = await Promise.all([1, 2, 3, 4, 5].map(() => ask(thinker)));
    const requests = await world.provider.received(5);

    expect(underWay(requests)).toHaveLength(5);
    const outputs = requests.map(outputOf);
    for (const output of outputs) expect(output).toBeGreaterThanOrEqual(1_024);
    const most = outputs.reduce((sum, output) => sum + output, 0);
    if ('tokens_per_day' in budget) expect(most).toBeLessThanOrEqual(9_500);
    else expect(usdOf({ prompt: 0, completion: most })).toBeLessThanOrEqual(0.19);
    until.resolve();
    for (const id of ids) expect(await ended(thinker, id)).toMatchObject({ status: 'completed' });
    const today = await todayOf(thinker);
    expect(today).toMatchObject({ reserved: 0, reserved_usd: 0 });
    expect(today[used]).toBeCloseTo(used === 'used' ? 5 * 15 : 5 * usdOf(usage), 9);
  },
);

test.each([
  ['in money', { usd_per_day: 0.3 }, 0.3],
  ['in tokens', { tokens_per_day: 14_000 }, 14_000],
])(
  'a budget %s is never exceeded by answers that use all that they may',
  async (_, budget, limit) => {
    const world = await startWorld();
    const thinker = await newThinker(world.platform);
    await setBudget(thinker, budget);
    world.provider.script((request) => ({
      text: 'All.',
      usage: { prompt: 10, completion: Math.ceil(outputOf(request) / (1 + (request.index % 3))) },
      finish: request.index % 2 === 0 ? 'length' : 'stop',
    }));

    const ids = await Promise.all(Array.from({ length: 20 }, () => ask(thinker)));
    const jobs = await Promise.all(ids.map((id) => ended(thinker, id)));

    const codes = jobs.map(({ status, error }) => error?.code ?? status);
    expect(new Set(codes)).toEqual(new Set(['completed', 'budget_exceeded']));
    const costs = world.provider.requests.map(
      ({ cost }) => cost as { prompt: number; completion: number },
    );
    const tokens = costs.reduce((sum, { prompt, completion }) => sum + prompt + completion, 0);
    const usd = costs.reduce((sum, cost) => sum + usdOf(cost), 0);
    expect('usd_per_day' in budget ? usd : tokens).toBeLessThanOrEqual(limit);
    const today = await todayOf(thinker);
    expect(today).toMatchObject({ used: tokens, reserved: 0, reserved_usd: 0 });
    expect(today.used_usd).toBeCloseTo(usd, 9);
  },
);

test('an answer that is cut at a shared limit is asked for once more, whole', async () => {
  const world = await startWorld();
  const thinker = await newThinker(world.platform);
  await setBudget(thinker, { tokens_per_day: 14_000 });
  world.provider.script(answerOf(5_000));

  const id = await ask(thinker);
  const job = await ended(thinker, id);
  const events = await (await thinker.follow(id)).ended;

  expect(job).toMatchObject({
    status: 'completed',
    attempt: 1,
    output: [{ text: 'Whole.', isCut: false }],
  });
  const [first, second] = world.provider.requests.map(outputOf) as [number, number];
  expect(world.provider.requests).toHaveLength(2);
  expect(first).toBeLessThan(wholeOutput / 2);
  expect(second).toBe(wholeOutput);
  expect(await thinker.steps(id)).toMatchObject([
    { status: 'failed', completion_tokens: first, error: { code: 'budget_exceeded' } },
    { status: 'completed', completion_tokens: 5_000, error: null },
  ]);
  // Clients are shown one answer; the conversation has what was paid for.
  const shown = events.filter(({ event }) => event === 'message');
  expect(shown.map(({ data }) => data.content)).toEqual(['Whole.']);
  expect(events.filter(({ event }) => event === 'log').map(({ data }) => data.message)).toEqual([
    `The answer was cut at ${first} tokens, which is what a budget had left; a longer one is asked for, if the budget has tokens for it`,
  ]);
  expect(await todayOf(thinker)).toMatchObject({ used: 10 + first + 10 + 5_000, reserved: 0 });
  expect(job.token_stats).toMatchObject({ total_tokens: 10 + first + 10 + 5_000 });
});

test('a cut answer waits for calls under way before it is asked for again', async () => {
  const world = await startWorld();
  const thinker = await newThinker(world.platform);
  await setBudget(thinker, { tokens_per_day: 12_000 });
  const until = Promise.withResolvers<void>();
  world.provider.script((request) =>
    request.index === 0
      ? { text: 'Yes.', usage: { prompt: 10, completion: 5 }, until: until.promise }
      : answerOf(5_000)(request),
  );
  const other = await ask(thinker);
  await world.provider.received(1);

  const id = await ask(thinker);
  await waitsForBudget(thinker, id);

  expect(world.provider.requests).toHaveLength(2);
  until.resolve();
  expect(await ended(thinker, other)).toMatchObject({ status: 'completed' });
  expect(await ended(thinker, id)).toMatchObject({
    status: 'completed',
    output: [{ text: 'Whole.' }],
  });
  expect(world.provider.requests.map(outputOf)[2]).toBe(wholeOutput);
});

test.each([
  ['is asked for with all that is left', 4_800, 2],
  ['is not asked for where less than twice as much is left', 3_000, 1],
])('an answer that the budget cannot hold %s, and fails its job', async (_, tokens, calls) => {
  const world = await startWorld();
  const thinker = await newThinker(world.platform);
  await setBudget(thinker, { tokens_per_day: tokens });
  world.provider.script(answerOf(7_000));

  const id = await ask(thinker);
  const job = await ended(thinker, id);

  expect(job).toMatchObject({ status: 'failed', attempt: 1, error: { code: 'budget_exceeded' } });
  expect(job.error.message).toMatch(
    /^The answer was cut at \d+ tokens, which is what a budget had left$/,
  );
  expect(world.provider.requests).toHaveLength(calls);
  const { used, reserved } = await todayOf(thinker);
  expect(used).toBe(world.provider.requests.reduce((sum, one) => sum + 10 + outputOf(one), 0));
  expect(used).toBeLessThanOrEqual(tokens);
  expect(reserved).toBe(0);
  const texts = (await thinker.messages(job.conversation_id)).map(({ content }) => content);
  expect(texts.filter((text) => text === 'Half')).toHaveLength(calls);
});

test('a repeated attempt does not pay for a shorter answer again', async () => {
  const world = await startWorld();
  const thinker = await newThinker(world.platform, { model_settings: { wait_for_provider: 0 } });
  await setBudget(thinker, { tokens_per_day: 14_000 });
  const down: Reply = { fault: { status: 503, headers: { 'retry-after-ms': '1' } } };
  world.provider.script((request) =>
    request.index > 0 && request.index < 4 ? down : answerOf(5_000)(request),
  );

  const job = await ended(thinker, await ask(thinker));

  expect(job).toMatchObject({ status: 'completed', attempt: 2, output: [{ text: 'Whole.' }] });
  const [first, ...later] = world.provider.requests.map(outputOf);
  expect(first).toBeLessThan(wholeOutput / 2);
  expect(later).toEqual([1, 2, 3, 4].map(() => wholeOutput));
});

test('a call with an effort of reasoning reserves its whole answer', async () => {
  const world = await startWorld();
  const thinker = await newThinker(world.platform);
  await setBudget(thinker, { tokens_per_day: 14_000 });
  world.provider.script(answerOf(5));

  await ended(thinker, await ask(thinker, { effort: 'low' }));
  await ended(thinker, await ask(thinker, { effort: 'none' }));

  const [reasoning, other] = world.provider.requests.map(outputOf);
  expect(reasoning).toBe(wholeOutput);
  expect(other).toBeLessThan(wholeOutput / 2);
});

test('a call of a model that is known to reason by itself reserves its whole answer without an effort', async () => {
  const world = await startWorld();
  const thinker = await newThinker(world.platform);
  const changed = await thinker.put('/api/agents/thinker', { model: 'openai/gpt-5-mini' });
  expect(changed.status, changed.text).toBe(200);
  await setBudget(thinker, { tokens_per_day: 14_000 });
  world.provider.script(answerOf(5));

  await ended(thinker, await ask(thinker));

  expect(world.provider.requests.map(outputOf)).toEqual([wholeOutput]);
});
