/** Providers of models that limit the rate or are unavailable: runs wait without a slot, and all calls obey. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectServed, limitedTo } from '../support/limited-provider.ts';
import type { Script, ScriptedRequest } from '../support/scripted-provider.ts';
import { newThinker, startThinkers, type Thinkers } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

/** Each test has a provider of its own, so that no test learns of another one's pauses. */
const hostile = ['hostile', 'hostiler', 'hostilest', 'odd'];
const names = [
  'slow',
  'busy',
  'two',
  'told',
  ...hostile,
  'fallen',
  'down',
  'counted',
  'owned',
  'patient',
  'again',
  'metered',
];

let world: Thinkers;
beforeAll(async () => {
  const other = await startThinkers();
  const { openaiBaseUrl } = other.provider;
  await other.platform.stop();
  const environment = Object.fromEntries(
    names.map((name) => [`${name.toUpperCase()}_BASE_URL`, openaiBaseUrl]),
  );
  const { platform } = await startThinkers({
    environment: {
      ...environment,
      OPENAI_BASE_URL: openaiBaseUrl,
      ANTHROPIC_BASE_URL: openaiBaseUrl,
      COUNTED_CALLS_PER_MINUTE: '60',
      EVEN_BASE_URL: openaiBaseUrl,
      EVEN_CALLS_PER_MINUTE: '300',
      FAIR_BASE_URL: openaiBaseUrl,
      FAIR_CALLS_PER_MINUTE: '300',
      METERED_TOKENS_PER_MINUTE: '60000',
      WORKER_CONCURRENCY: '4',
      ENCRYPTION_KEY: 'a'.repeat(64),
    },
  });
  world = { ...other, platform };
});
afterAll(async () => {
  await world.platform.stop();
  await world.provider.close();
});

/** Answers by the provider, which is the first part of the name of the model. */
const scripts = new Map<string, Script>();
const asked = (model: string) => world.provider.requests.filter((one) => one.model === model);
function scripted(model: string, script: Script) {
  scripts.set(model, script);
  world.provider.script((request) => scripts.get(request.model)?.(request) ?? { text: 'Fine.' });
}

const turnsOf = ({ messages }: ScriptedRequest) =>
  messages.filter(({ role }) => role === 'assistant').length;

/** The bound is one of the provider alone, so few tasks show it; `MEASURE=1` makes 60 of 4 turns, and prints. */
const [tasks, turns] = process.env['MEASURE'] ? [60, 4] : [15, 3];

test('more tasks than a provider serves at once all complete, with few refusals', async () => {
  const limit = limitedTo(8, (request) =>
    turnsOf(request) < turns - 1
      ? { toolCalls: [{ name: 'recall', input: { query: `${turnsOf(request)}` } }] }
      : { text: 'Done.' },
  );
  scripted('eight', limit.script);
  const thinker = await newThinker(world.platform, { model: 'slow/eight' });

  await expectServed(limit, thinker, () =>
    Promise.all(Array.from({ length: tasks }, (_, n) => thinker.begin(`Task ${n}`))),
  );

  expect(asked('eight')).toHaveLength(tasks * turns + limit.refusals());
}, 120_000);

test('a run waits without a slot for as long as the provider asks, and says so', async () => {
  let calls = 0;
  scripted('later', () => {
    calls += 1;
    return calls === 1
      ? { fault: { status: 429, headers: { 'retry-after': '22' } } }
      : { text: 'Now.' };
  });
  const thinker = await newThinker(world.platform, { model: 'busy/later' });
  const id = await thinker.begin('Think');

  const waiting = (await thinker.jobIn(id, 'waiting')).body;
  expect(waiting).toMatchObject({
    attempt: 1,
    waiting_for: expect.stringMatching(/^busy: rate limit, next try at \d{4}-/),
  });
  expect((await thinker.get('/api/queue')).body.held_by).toContainEqual({
    code: 'provider',
    message: expect.stringMatching(/^1 run waits for busy: rate limit, next try at /),
    subject: null,
  });
  const others = await Promise.all(Array.from({ length: 6 }, (_, n) => thinker.begin(`${n}`)));
  for (const other of others) await thinker.jobIn(other, 'waiting');
  // The provider is left alone by all of them.
  expect(asked('later')).toHaveLength(1);

  const { body } = await thinker.jobIn(id, 'completed', 'failed');
  expect(body).toMatchObject({ attempt: 1, output: { answer: 'Now.' }, waiting_for: null });
  const events = await (await thinker.follow(id)).ended;
  const logs = events.filter(({ event }) => event === 'log').map(({ data }) => data.message);
  expect(logs).toContainEqual(expect.stringMatching(/^Waits for busy: rate limit, next try at /));
  expect(await thinker.steps(id)).toMatchObject([
    { kind: 'model', status: 'failed', error: { code: 'upstream_unavailable' } },
    { kind: 'provider', name: 'busy: rate limit', status: 'completed' },
    { kind: 'model', status: 'completed' },
  ]);
  for (const other of others) await thinker.jobIn(other, 'completed');
  expect(asked('later')).toHaveLength(8);
});

test('a turn whose short waits go on is unloaded, and says for what it waits', async () => {
  scripted('short', () => ({ fault: { status: 429, headers: { 'retry-after': '6' } } }));
  const thinker = await newThinker(world.platform, { model: 'again/short' });
  const id = await thinker.begin('Think');

  const waiting = (await thinker.jobIn(id, 'waiting')).body;

  expect(waiting.waiting_for).toMatch(/^again: rate limit, next try at /);
  expect(asked('short').length).toBeLessThanOrEqual(2);
  await thinker.post(`/api/jobs/${id}/cancel`);
});

test.each(
  ['31536000', '-1', 'soon', 'Fri, 31 Dec 9999 23:59:59 GMT'].map((after, n) => [
    after,
    hostile[n],
  ]),
)(
  'a provider with a Retry-After of %s costs the time of the wait, and the job says what it said',
  async (after, provider) => {
    const model = `of-${provider}`;
    scripted(model, () => ({ fault: { status: 503, headers: { 'retry-after': after } } }));
    const thinker = await newThinker(world.platform, {
      model: `${provider}/${model}`,
      model_settings: { wait_for_provider: 6 },
    });

    const job = await thinker.task('Think');

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: {
        code: 'upstream_unavailable',
        message: expect.stringMatching(/503.*waited 6 s.*wait_for_provider/),
      },
      token_stats: { total_tokens: 0 },
    });
  },
);

test('what a provider said to one organization is not shown to another', async () => {
  scripted('told', () => ({ fault: { status: 429, headers: { 'retry-after': '600' } } }));
  const settings = { model: 'told/told', model_settings: { wait_for_provider: 1 } };
  const [one, other] = await Promise.all([0, 1].map(() => newThinker(world.platform, settings)));

  expect(await one?.task('Think')).toMatchObject({
    error: { message: expect.stringContaining('scripted 429') },
  });
  const { error } = (await other?.task('Think')) ?? {};
  expect(error).toMatchObject({
    message: expect.stringMatching(/^The provider told is not called/),
  });
  expect(error.message).not.toContain('scripted');
});

test('a pause of one credential holds up no other', async () => {
  scripted('owned', () => ({ fault: { status: 429, headers: { 'retry-after': '3600' } } }));
  const [one, other] = await Promise.all(
    [0, 1].map(() => newThinker(world.platform, { model: 'owned/owned' })),
  );
  if (one === undefined || other === undefined) throw new Error('no thinkers');
  const credentials = { api_key: 'sk-of-an-organization', base_url: world.provider.openaiBaseUrl };
  const path = `/admin/organizations/${one.organization}/credentials/owned`;
  expect((await world.platform.admin('PUT', path, credentials)).status).toBe(200);
  await one.jobIn(await one.begin('Think'), 'waiting');

  scripted('owned', () => ({ text: 'Served.' }));
  expect(await other.task('Think')).toMatchObject({ output: { answer: 'Served.' } });
  const second = await one.begin('Think');
  await one.jobIn(second, 'waiting');
  expect(asked('owned')).toHaveLength(2);
  await one.post(`/api/jobs/${second}/cancel`);
  await one.jobIn(second, 'cancelled');
});

test('a pause of one model holds up no other of its provider', async () => {
  scripted('paused', () => ({ fault: { status: 429, headers: { 'retry-after': '3600' } } }));
  scripted('fine', () => ({ text: 'Served.' }));
  const thinker = await newThinker(world.platform, { model: 'two/paused' });
  const waiting = await thinker.begin('Think');
  await thinker.jobIn(waiting, 'waiting');

  const other = await newThinker(world.platform, { model: 'two/fine' });
  expect(await other.task('Think')).toMatchObject({ attempt: 1, output: { answer: 'Served.' } });
  expect(asked('paused')).toHaveLength(1);
  await thinker.post(`/api/jobs/${waiting}/cancel`);
});

test('a fallback answers in place of a provider that is left alone, without a call of that one', async () => {
  scripted('first', () => ({ fault: { status: 429, headers: { 'retry-after': '600' } } }));
  scripted('second', () => ({ text: 'Second.' }));
  const thinker = await newThinker(world.platform, {
    model: 'fallen/first',
    fallback_models: ['patient/second'],
  });

  for (const task of ['One', 'Two']) {
    expect(await thinker.task(task)).toMatchObject({ attempt: 1, output: { answer: 'Second.' } });
  }
  expect(asked('first')).toHaveLength(1);
});

test('a provider that is down is probed, and its runs go on once it answers', async () => {
  let isUp = false;
  scripted('down', () => (isUp ? { text: 'Up.' } : { fault: { status: 500 } }));
  const thinker = await newThinker(world.platform, { model: 'down/down' });
  const ids = await Promise.all(Array.from({ length: 12 }, (_, n) => thinker.begin(`Task ${n}`)));
  await waitFor(async () => (await thinker.get('/api/jobs?status=waiting')).body.data.length >= 1, {
    describe: 'runs wait',
  });
  const before = asked('down').length;
  isUp = true;

  for (const id of ids) {
    expect((await thinker.jobIn(id, 'completed', 'failed')).body).toMatchObject({
      attempt: 1,
      output: { answer: 'Up.' },
    });
  }
  expect(before).toBeLessThan(12 * 4);
});

describe('limits that the operator sets', () => {
  test('are kept to by all calls together', async () => {
    const earlier = asked('counted').length;
    scripted('counted', () => ({ text: 'Counted.' }));
    const thinkers = await Promise.all(
      [0, 1].map(() => newThinker(world.platform, { model: 'counted/counted' })),
    );
    const began = performance.now();
    await Promise.all(thinkers.flatMap(({ task }) => [task('One'), task('Two')]));

    const moments = asked('counted').slice(earlier);
    expect(moments).toHaveLength(4);
    // Each call may come later than its moment, the first one as well, but none earlier: so from before the first.
    expect((moments.at(-1)?.at ?? 0) - began).toBeGreaterThan(2_990);
  });

  test('are kept to by calls that their run has held up before', async () => {
    const released = Promise.withResolvers<void>();
    let served = 0;
    scripted('even', () =>
      served++ < 16 ? { until: released.promise, text: 'Late.' } : { text: 'Now.' },
    );
    const thinker = await newThinker(world.platform, { model: 'even/even' });
    const requests = Array.from({ length: 20 }, (_, n) => ({ prompt: `${n}`, caught: true }));
    const done = thinker.asking([requests]);
    // A run makes 16 calls at a time. Until then the moments of the other four would have passed.
    await waitFor(() => asked('even').length === 16, { describe: '16 calls' });
    const began = performance.now();
    await waitFor(() => performance.now() - began > 1_500, { describe: 'moments pass' });
    const releasedAt = performance.now();
    released.resolve();
    await done;

    expect(asked('even')).toHaveLength(20);
    expect((asked('even').at(-1)?.at ?? 0) - releasedAt).toBeGreaterThan(590);
  });

  test('are given to organizations in turn, however many calls one of them has waiting', async () => {
    scripted('fair', () => ({ text: 'Fair.' }));
    const [many, few] = await Promise.all(
      [0, 1].map(() => newThinker(world.platform, { model: 'fair/fair' })),
    );
    if (many === undefined || few === undefined) throw new Error('no thinkers');
    const ids = await Promise.all(Array.from({ length: 60 }, (_, n) => many.begin(`Task ${n}`)));
    await waitFor(() => asked('fair').length >= 3, { describe: 'some are made' });
    const before = asked('fair').length;

    expect(await few.task('Mine')).toMatchObject({ status: 'completed', attempt: 1 });

    // 15 calls have their moments, and two more come by turns; those of one organization alone would be 57.
    expect(asked('fair').length - before).toBeLessThan(30);
    for (const id of ids) await many.jobIn(id, 'completed');
    expect(asked('fair')).toHaveLength(61);
  });

  test('are kept to in tokens, by what the calls took', async () => {
    scripted('metered', () => ({ text: 'Fine.', usage: { prompt: 1_500, completion: 500 } }));
    const thinker = await newThinker(world.platform, { model: 'metered/metered' });
    const began = performance.now();
    for (const task of ['One', 'Two', 'Three']) {
      expect(await thinker.task(task)).toMatchObject({ status: 'completed' });
    }

    expect((asked('metered').at(-1)?.at ?? 0) - began).toBeGreaterThan(3_990);
  });
});
