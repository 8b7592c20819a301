import { afterAll, beforeAll, expect, test } from 'vitest';
import { answering, callingTools } from '../support/scripted-provider.ts';
import { newThinker, startThinkers, type Thinkers } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers({ environment: { RETRY_BACKOFF_MS: '1' } });
});
afterAll(() => world.stop());

const lastBody = () => world.provider.requests.at(-1)?.body;
const outputOf = (body: Record<string, unknown> | undefined) =>
  body?.['max_completion_tokens'] ?? body?.['max_tokens'];

test.each([
  ['openai/test', { reasoning_effort: 'high' }],
  ['anthropic/test', { thinking: { type: 'enabled', budget_tokens: 3_600 } }],
])('a run calls %s with the settings of its agent', async (model, effort) => {
  const model_settings = { max_output_tokens: 6_000, effort: 'high' as const };
  const { task } = await newThinker(world.platform, { model, model_settings });
  world.provider.script(answering('Done.'));

  expect(await task('Think')).toMatchObject({ status: 'completed' });

  expect(lastBody()).toMatchObject(effort);
  expect(outputOf(lastBody())).toBe(6_000);
});

test('a request of a skill sets what the agent does not, and may ask for less', async () => {
  const model_settings = { max_output_tokens: 600, temperature: 0.7 };
  const { asking } = await newThinker(world.platform, { model_settings });
  world.provider.script(answering('Done.'));

  await asking([{ prompt: 'One?', maxOutputTokens: 50, temperature: 0 }]);
  expect(outputOf(lastBody())).toBe(50);
  expect(lastBody()).toMatchObject({ temperature: 0 });

  await asking([{ prompt: 'Two?', maxOutputTokens: 5_000, effort: 'low' }]);
  expect(outputOf(lastBody())).toBe(600);
  expect(lastBody()).toMatchObject({ temperature: 0.7, reasoning_effort: 'low' });
});

test('what a skill asks of a model that is known not to take it is left out, and the log says so', async () => {
  const thinker = await newThinker(world.platform, { model: 'openai/o3' });
  world.provider.script(callingTools([{ name: 'recall', input: { query: 'x' } }], 'Done.'));

  const job = await thinker.asking([
    { prompt: 'One?', temperature: 0, effort: 'low', tools: true },
  ]);

  expect(job.status).toBe('completed');
  expect(lastBody()).not.toHaveProperty('temperature');
  expect(lastBody()).toMatchObject({ reasoning_effort: 'low' });
  const events = await (await thinker.follow(job.job_id)).ended;
  const logs = events.filter(({ event }) => event === 'log').map(({ data }) => data.message);
  expect(logs).toEqual([
    'openai/o3 does not take the temperature that was asked for: it is left out',
  ]);
});

test('the dialogue is trimmed to the context of the agent', async () => {
  const thinker = await newThinker(world.platform, {
    model_settings: { context_tokens: 3_000, max_output_tokens: 100 },
  });
  world.provider.script(answering('Noted.'));
  const first = await thinker.task('a'.repeat(5_600));
  const continued = { 'x-conversation-id': first.conversation_id };

  await thinker.task('b'.repeat(5_600), {}, continued);

  const sent = JSON.stringify(lastBody());
  expect(sent).toContain('bbbb');
  expect(sent).not.toContain('aaaa');
});

test.each([
  ['first_byte_timeout_ms', 'it sent nothing for 1 s'],
  ['timeout_ms', 'took longer than 1 s'],
])('a call that exceeds %s ends the attempt, which is repeated', async (name, words) => {
  const thinker = await newThinker(world.platform, {
    model_settings: { [name]: 1_000, wait_for_provider: 0 },
  });
  const never = new Promise(() => {});
  const before = world.provider.requests.length;
  world.provider.script(({ index }) =>
    index === before ? { text: 'Late.', until: never } : { text: 'In time.' },
  );

  const job = await thinker.task('Think');

  expect(job).toMatchObject({ status: 'completed', attempt: 2, output: { answer: 'In time.' } });
  expect(await thinker.steps(job.job_id)).toMatchObject([
    {
      status: 'failed',
      error: { code: 'upstream_unavailable', message: expect.stringContaining(words) },
    },
    { status: 'completed' },
  ]);
});
