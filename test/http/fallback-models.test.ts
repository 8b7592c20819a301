import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid } from '../support/expectations.ts';
import type { Fault, Reply, ScriptedRequest } from '../support/scripted-provider.ts';
import { newOwnThinker, startThinkers, type Thinkers } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  world = await startThinkers({
    environment: { RETRY_BACKOFF_MS: '1', CLOSED_BASE_URL: `http://127.0.0.1:${port}/v1` },
  });
});
afterAll(() => world.stop());

/** Answers by the name of the model; the models that were asked. */
function scripted(replies: Record<string, Reply | ((request: ScriptedRequest) => Reply)>) {
  const asked: string[] = [];
  world.provider.script((request) => {
    asked.push(request.model);
    const reply = replies[request.model] ?? {};
    return typeof reply === 'function' ? reply(request) : reply;
  });
  return asked;
}

const fallen = (model: string, more: object = {}) =>
  newOwnThinker(world, {
    model,
    fallback_models: ['anthropic/second', 'openai/third'],
    ...more,
  });

const second = { text: 'Second.', usage: { prompt: 20, completion: 3 } };
const never = new Promise(() => {});

describe('a turn is asked of the next model at once', () => {
  test.each<[string, Reply, object?]>([
    ['an error of the provider', { fault: { status: 500 } }],
    ['an overloaded provider', { fault: { status: 529, headers: { 'retry-after': '3' } } }],
    ['a limited rate', { fault: { status: 429 } }],
    ['a stream that breaks', { text: 'The first answer', piece: 4, fault: 'cut' }],
    ['an error within the stream', { text: 'The first answer', piece: 4, fault: 'error-event' }],
    ['an answer that is not JSON', { text: 'The first answer', fault: 'malformed' }],
    ['a first byte that comes too late', { until: never }, { first_byte_timeout_ms: 1_000 }],
    [
      'an answer that takes too long',
      { text: 'The first answer', piece: 4, hold: { after: 3, until: never } },
      { timeout_ms: 1_500 },
    ],
  ])('after %s', async (_, reply, model_settings = {}) => {
    const thinker = await fallen('openai/first', { model_settings });
    const asked = scripted({ first: reply, second });

    const job = await thinker.task('Think');

    expect(job).toMatchObject({ status: 'completed', attempt: 1, output: { answer: 'Second.' } });
    expect(asked).toEqual(['first', 'second']);
    expect(await thinker.steps(job.job_id)).toMatchObject([
      { turn: 1, name: 'openai/first', status: 'failed', error: { code: 'upstream_unavailable' } },
      { turn: 1, name: 'anthropic/second', status: 'completed', prompt_tokens: 20 },
    ]);
  });

  test('after a refused connection', async () => {
    const thinker = await fallen('closed/first');
    const asked = scripted({ second });

    const job = await thinker.task('Think');

    expect(job).toMatchObject({ status: 'completed', attempt: 1, output: { answer: 'Second.' } });
    expect(asked).toEqual(['second']);
  });
});

test('the models are asked in order, and the last one as often as without fallbacks', async () => {
  const thinker = await fallen('openai/first');
  const failing: Reply = { fault: { status: 503 } };
  let last = 0;
  const asked = scripted({
    first: failing,
    second: failing,
    third: () => {
      last += 1;
      return last < 3 ? failing : { text: 'Third.' };
    },
  });

  const job = await thinker.task('Think');

  expect(job).toMatchObject({ status: 'completed', attempt: 1, output: { answer: 'Third.' } });
  expect(asked).toEqual(['first', 'second', 'third', 'third', 'third']);
});

test('no other model is asked where the provider refuses the request itself', async () => {
  const thinker = await fallen('openai/first');
  const asked = scripted({ first: { fault: { status: 400 } }, second });

  expect(await thinker.task('Think')).toMatchObject({
    status: 'failed',
    attempt: 1,
    error: { code: 'skill_execution_failed' },
  });
  expect(asked).toEqual(['first']);
});

const saying = (message: string, more: object = {}) => ({ error: { message, ...more } });

test.each<[string, Fault]>([
  ['names the model in a 400', { status: 400, body: saying('first has been retired') }],
  [
    'names the parameter of the model in a 400',
    { status: 400, body: saying('not permitted', { param: 'model' }) },
  ],
  ['does not accept the key (401)', { status: 401 }],
  ['has no credit left (402)', { status: 402 }],
  ['does not permit the model (403)', { status: 403 }],
  ['does not know the model (404)', { status: 404 }],
])('another model is asked, once in a turn, where the provider %s', async (_, fault) => {
  const thinker = await fallen('openai/first');
  const asked = scripted({ first: { fault }, second });

  const job = await thinker.task('Think');

  expect(job).toMatchObject({ status: 'completed', attempt: 1, output: { answer: 'Second.' } });
  expect(asked).toEqual(['first', 'second']);
  const events = await (await thinker.follow(job.job_id)).ended;
  const logs = events.filter(({ event }) => event === 'log').map(({ data }) => data.message);
  expect(logs).toContainEqual(expect.stringMatching(/anthropic\/second is asked in its place$/));
});

test('a job whose every model failed says what each of them said', async () => {
  const refusing = (message: string): Reply => ({ fault: { status: 400, body: saying(message) } });
  const cases: [Record<string, Reply>, { code: string; attempt: number }][] = [
    [
      {
        first: { fault: { status: 401 } },
        second: refusing('second is retired'),
        third: { fault: { status: 503 } },
      },
      { code: 'upstream_unavailable', attempt: 3 },
    ],
    [
      {
        first: { fault: { status: 404, body: saying('who is first?') } },
        second: refusing('second is retired'),
        third: { fault: { status: 402, body: saying('third has to be paid') } },
      },
      { code: 'skill_execution_failed', attempt: 1 },
    ],
  ];
  for (const [replies, { code, attempt }] of cases) {
    const thinker = await fallen('openai/first', { model_settings: { wait_for_provider: 0 } });
    scripted(replies);

    const job = await thinker.task('Think');

    expect(job).toMatchObject({ status: 'failed', attempt, error: { code } });
    expect(job.error.message).toMatch(
      /^No model answered\. openai\/first: .*\(40[14]\).*anthropic\/second: .*second is retired.*openai\/third: /,
    );
  }
});

test('a setting that the provider refuses is one that the next model may take', async () => {
  const refusal = (message: string): Fault => ({ status: 400, body: { error: { message } } });
  for (const message of [
    'Function tools with reasoning_effort are not supported for first in /v1/chat/completions.',
    "Unsupported value: 'temperature' does not support 0.2 with this model.",
    "Invalid schema for function 'own__ping__v1_0': In context=(), object schema missing properties.",
  ]) {
    const thinker = await fallen('openai/first');
    const asked = scripted({ first: { fault: refusal(message) }, second });

    const job = await thinker.task('Think');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'Second.' } });
    expect(asked).toEqual(['first', 'second']);
  }
});

test('an effort is not sent beside tools to a model that refuses it, and the stream says so', async () => {
  const thinker = await newOwnThinker(world, {
    model: 'openai/gpt-5.2',
    model_settings: { effort: 'high' },
  });
  const before = world.provider.requests.length;
  world.provider.script(() => ({ text: 'Done.' }));

  const job = await thinker.task('Think');
  await thinker.asking([{ prompt: 'Think', tools: false }]);

  const [withTools, without] = world.provider.requests.slice(before);
  expect(withTools?.tools).not.toEqual([]);
  expect(withTools?.body).not.toHaveProperty('reasoning_effort');
  expect(without?.body.reasoning_effort).toBe('high');
  const events = await (await thinker.follow(job.job_id)).ended;
  expect(events.map(({ data }) => data.message)).toContain(
    'openai/gpt-5.2 takes no effort but none in chat completions with tools: the effort is left out',
  );
});

test('an empty answer is none: the next model is asked, and without one the job fails', async () => {
  const empty = { text: ' \n', usage: { prompt: 10, completion: 2 } };
  const thinker = await fallen('openai/first');
  const asked = scripted({ first: empty, second });
  expect(await thinker.task('Think')).toMatchObject({ output: { answer: 'Second.' } });
  expect(asked).toEqual(['first', 'second']);

  for (const more of [{}, { schema: { type: 'object' } }]) {
    const alone = await newOwnThinker(world, { model: 'openai/first' });
    const tries = scripted({ first: empty });
    const job = await alone.task('Think', more);
    expect(job).toMatchObject({
      status: 'failed',
      error: {
        code: 'upstream_unavailable',
        message: expect.stringContaining('The answer of openai/first is empty'),
      },
      // Each try is paid for, and on record.
      token_stats: { prompt_tokens: 30, completion_tokens: 6 },
    });
    expect(tries).toEqual(['first', 'first', 'first']);
    const calls = (await alone.steps(job.job_id)).filter(({ kind }) => kind === 'model');
    expect(calls.map(({ status }) => status)).toEqual(['failed', 'failed', 'failed']);
  }
});

test.each<[string, Reply, string]>([
  [
    'the filter of the provider withheld the answer',
    { text: 'Some', finish: 'content-filter' },
    'openai/first, or the filter of its provider, refused to answer: Some',
  ],
  [
    'the model refuses to answer',
    { text: 'I cannot help with that.', isRefusal: true },
    'openai/first refused to answer: I cannot help with that.',
  ],
])(
  'the job fails with model_refused, and no other model is asked, where %s',
  async (_, reply, message) => {
    const thinker = await fallen('openai/first');
    const usage = { prompt: 20, completion: 3 };
    const asked = scripted({ first: { ...reply, usage }, second });

    const job = await thinker.task('Think');

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'model_refused', message },
      token_stats: { total_tokens: 23 },
    });
    expect(asked).toEqual(['first']);
    expect(await thinker.steps(job.job_id)).toMatchObject([
      { status: 'failed', error: { code: 'model_refused' } },
    ]);
  },
);

test('nothing of a broken answer is in the answer, its message, its tokens or its events', async () => {
  const thinker = await fallen('openai/first');
  scripted({
    first: { text: 'The first answer', piece: 4, fault: 'cut', faultAfter: 3 },
    second,
  });

  const job = await thinker.task('Think');

  const answers = (await thinker.messages(job.conversation_id)).filter(
    ({ role, model }: { role: string; model: string }) =>
      role === 'assistant' && model === 'anthropic/second',
  );
  expect(answers).toMatchObject([{ content: 'Second.' }]);
  const { breakdown } = await thinker.tokens(job.conversation_id);
  expect(breakdown).toContainEqual(
    expect.objectContaining({
      message_id: answers[0]?.id,
      prompt_tokens: 20,
      completion_tokens: 3,
    }),
  );
  const events = await (await thinker.follow(job.job_id)).ended;
  const [, answered] = await thinker.steps(job.job_id);
  const said = events.filter(({ event, data }) => event === 'token' && data.step === answered.step);
  expect(said.map(({ data }) => data.text).join('')).toBe('Second.');
  expect(events.filter(({ event }) => event === 'message')).toMatchObject([
    { data: { content: 'Second.' } },
  ]);
  const logs = events.filter(({ event }) => event === 'log').map(({ data }) => data.message);
  expect(logs).toEqual([expect.stringContaining('anthropic/second is asked in its place')]);
});

test('a model that failed is asked last in later turns, which another one answered with tools', async () => {
  const thinker = await fallen('openai/first');
  const asked = scripted({
    first: { fault: { status: 500 } },
    second: ({ toolResults }) =>
      toolResults.length > 0
        ? { text: 'Found.' }
        : { toolCalls: [{ name: 'recall', input: { query: 'x' } }] },
  });

  const job = await thinker.task('Think');

  expect(job).toMatchObject({ status: 'completed', output: { answer: 'Found.' } });
  expect(asked).toEqual(['first', 'second', 'second']);
});

test('a fallback without credentials is passed over, and the job is repeated', async () => {
  const thinker = await newOwnThinker(world, {
    model: 'openai/first',
    model_settings: { wait_for_provider: 0 },
    fallback_models: ['unknown/second'],
  });
  let calls = 0;
  scripted({
    first: () => {
      calls += 1;
      return calls === 1 ? { fault: { status: 500 } } : { text: 'First.' };
    },
  });

  expect(await thinker.task('Think')).toMatchObject({
    status: 'completed',
    attempt: 2,
    output: { answer: 'First.' },
  });
});

test('a fallback without a known price is passed over under a budget in money', async () => {
  const thinker = await newOwnThinker(world, {
    model: 'openai/gpt-4o',
    model_settings: { wait_for_provider: 0 },
    fallback_models: ['openai/unpriced'],
  });
  await thinker.put('/api/agents/thinker/budget', { usd_per_day: 5 });
  let calls = 0;
  const asked = scripted({
    'gpt-4o': () => {
      calls += 1;
      return calls === 1 ? { fault: { status: 500 } } : { text: 'First.' };
    },
  });

  const job = await thinker.task('Think');

  expect(job).toMatchObject({ status: 'completed', attempt: 2, output: { answer: 'First.' } });
  expect(asked).toEqual(['gpt-4o', 'gpt-4o']);
  const events = await (await thinker.follow(job.job_id)).ended;
  const logs = events.filter(({ event }) => event === 'log').map(({ data }) => data.message);
  expect(logs).toContainEqual(expect.stringMatching(/openai\/unpriced is not known.*passed over/));
});

test('models that do not take the settings of the agent are refused', async () => {
  const { post, put } = await fallen('openai/gpt-4o');
  const model_settings = { temperature: 0 };
  const fallback_models = ['openai/o3'];

  expectInvalid(
    await post('/api/agents', { model: 'openai/gpt-4o', model_settings, fallback_models }),
    'model_settings.temperature',
  );
  expect((await put('/api/agents/thinker', { fallback_models })).status).toBe(200);
  expectInvalid(await put('/api/agents/thinker', { model_settings }), 'model_settings.temperature');
  expectInvalid(
    await put('/api/agents/thinker', { fallback_models: ['a/b', 'openai/gpt-4o'] }),
    'fallback_models.1',
  );
  for (const models of [['x'], ['a/b', 'a/b'], Array.from({ length: 6 }, (_, i) => `a/${i}`)]) {
    const answer = await put('/api/agents/thinker', { fallback_models: models });
    expect(answer.status).toBe(400);
  }
});
