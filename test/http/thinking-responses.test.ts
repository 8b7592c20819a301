/** Agents on OpenAI's present models, which speak responses: tools beside an effort, and reasoning that is carried on. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answering, callingTools, type Script } from '../support/scripted-provider.ts';
import { newThinker, startThinkers, type Thinkers } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers({
    environment: { RETRY_BACKOFF_MS: '1', OPENAI_PROTOCOL: 'responses' },
  });
});
afterAll(() => world.stop());

const model = 'openai/gpt-5.6-terra';
const lastBody = () => world.provider.requests.at(-1)?.body;
const thinking = { text: '', signature: 'ZW5jcnlwdGVk' };
const recall = { name: 'recall', input: { query: 'x' } };

test('an agent calls tools with the effort that it is set to', async () => {
  const { task, follow } = await newThinker(world.platform, {
    model,
    model_settings: { effort: 'high' },
  });
  world.provider.script(({ toolResults }) =>
    toolResults.length > 0
      ? { text: 'Done.', usage: { prompt: 90, completion: 30, cacheRead: 40, reasoning: 20 } }
      : { thinking, toolCalls: [recall] },
  );

  const job = await task('Think');

  expect(job).toMatchObject({ status: 'completed', output: { answer: 'Done.' } });
  expect(lastBody()).toMatchObject({ store: false, reasoning: { effort: 'high' } });
  expect(world.provider.requests.at(-1)).toMatchObject({ protocol: 'responses' });
  expect(lastBody().tools.length).toBeGreaterThan(0);
  // The scripted provider refuses a request without the reasoning before its calls.
  expect(lastBody().input).toContainEqual(
    expect.objectContaining({ type: 'reasoning', encrypted_content: thinking.signature }),
  );
  const events = await (await follow(job.job_id)).ended;
  expect(events.filter(({ event }) => event === 'log')).toEqual([]);
});

test('a repeated attempt carries the recorded reasoning on', async () => {
  const thinker = await newThinker(world.platform, {
    model,
    model_settings: { first_byte_timeout_ms: 1_000, wait_for_provider: 0 },
  });
  const before = world.provider.requests.length;
  const script: Script = ({ index }) => {
    if (index === before) return { thinking, toolCalls: [recall] };
    return index === before + 1 ? { until: new Promise(() => {}) } : { text: 'Done.' };
  };
  world.provider.script(script);

  const job = await thinker.task('Think');

  expect(job).toMatchObject({ status: 'completed', attempt: 2 });
  const [, lost, repeated] = world.provider.requests.slice(before);
  expect(repeated?.body.input).toEqual(lost?.body.input);
  expect(repeated?.body.input).toContainEqual(expect.objectContaining({ type: 'reasoning' }));
});

test('an answer of JSON, a refusal and an error are those of the other protocols', async () => {
  const { asking, task } = await newThinker(world.platform, { model });
  const schema = {
    type: 'object',
    properties: { ok: { type: 'boolean' } },
    required: ['ok'],
    additionalProperties: false,
  };
  world.provider.script(answering('{"ok":true}'));
  await asking([{ prompt: 'One?', schema }]);
  expect(lastBody().text.format).toMatchObject({ type: 'json_schema', schema, strict: true });

  world.provider.script(answering('I cannot.', { isRefusal: true }));
  expect(await task('Two?')).toMatchObject({ status: 'failed', error: { code: 'model_refused' } });

  world.provider.script(() => ({ fault: { status: 400 } }));
  expect(await task('Three?')).toMatchObject({ status: 'failed' });
});

test('tools of chat completions are still called without the effort that OpenAI refuses there', async () => {
  const chat = await startThinkers({ environment: { RETRY_BACKOFF_MS: '1' } });
  try {
    const { task, follow } = await newThinker(chat.platform, {
      model,
      model_settings: { effort: 'high' },
    });
    chat.provider.script(callingTools([recall], 'Done.'));

    const job = await task('Think');

    expect(chat.provider.requests.at(-1)?.body).toMatchObject({ reasoning_effort: 'none' });
    const events = await (await follow(job.job_id)).ended;
    expect(events.map(({ data }) => data.message)).toContain(
      `${model} takes no effort but none in chat completions with tools: it is called with none`,
    );
  } finally {
    await chat.stop();
  }
});
