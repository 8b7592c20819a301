/** What the operator says of models decides what agents may set, and what calls are sent. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answering } from '../support/scripted-provider.ts';
import { newThinker, startThinkers, type Thinkers } from '../support/thinkers.ts';

const abilities = [
  { model: 'openai/plain*', tools: false, schema: false, context_tokens: 4_000, output_tokens: 50 },
  { model: 'anthropic/of-a-gateway', thinking: 'adaptive', efforts: ['low'] },
];

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers({
    environment: { RETRY_BACKOFF_MS: '1', MODEL_ABILITIES: JSON.stringify(abilities) },
  });
});
afterAll(() => world.stop());

const lastBody = () => world.provider.requests.at(-1)?.body;

test('a call is sent no tools, no schema and no longer answer than the model takes', async () => {
  const { asking, task, follow } = await newThinker(world.platform, { model: 'openai/plain-1' });
  world.provider.script(answering('{}'));

  const job = await task('Think');
  const events = await (await follow(job.job_id)).ended;

  expect(job).toMatchObject({ status: 'completed', output: { answer: '{}' } });
  expect(lastBody()).not.toHaveProperty('tools');
  expect(lastBody()).toMatchObject({ max_tokens: 50 });
  expect(events.map(({ data }) => data.message)).toContain('openai/plain-1 takes no tools');
  await asking([{ prompt: 'One?', schema: { type: 'object' } }]);
  expect(lastBody()).not.toHaveProperty('response_format');
});

test('the window of a model is that of an agent that sets none', async () => {
  const { task } = await newThinker(world.platform, { model: 'openai/plain-1' });
  world.provider.script(answering('Noted.'));
  const first = await task('a'.repeat(6_000));

  await task('b'.repeat(6_000), {}, { 'x-conversation-id': first.conversation_id });

  expect(JSON.stringify(lastBody())).toContain('bbbb');
  expect(JSON.stringify(lastBody())).not.toContain('aaaa');
});

test('an agent is refused what its models do not take', async () => {
  const settings = { context_tokens: 5_000, max_output_tokens: 60 };
  const creating = newThinker(world.platform, {
    model: 'openai/plain-1',
    model_settings: settings,
  });

  await expect(creating).rejects.toThrow(/must be at most 4000 for openai\/plain-1/);
});

test('a model of a gateway is told to think as the operator says', async () => {
  const { task } = await newThinker(world.platform, {
    model: 'anthropic/of-a-gateway',
    model_settings: { effort: 'low' },
  });
  world.provider.script(answering('Done.'));

  await task('Think');

  expect(lastBody()).toMatchObject({
    thinking: { type: 'adaptive' },
    output_config: { effort: 'low' },
  });
});
