import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid } from '../support/expectations.ts';
import { answering, inTurn } from '../support/scripted-provider.ts';
import { newThinker, runTask, startThinkers, type Thinkers } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const since = (before: number) => world.provider.requests.slice(before);
const soFar = () => world.provider.requests.length;

describe.each(['openai/test', 'anthropic/test'])('agent/run-task with %s', (model) => {
  test('answers with the text of the model, by the instructions of the agent', async () => {
    const { task, messages, get } = await newThinker(world.platform, {
      model,
      instructions: 'You are a calculator.',
    });
    const before = soFar();
    world.provider.script(answering('Four.'));

    const job = await task('What is two and two?');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'Four.' }, error: null });
    expect(since(before)).toMatchObject([
      { model: 'test', system: expect.stringMatching(/^You are a calculator\./) },
    ]);
    expect(await messages(job.conversation_id)).toMatchObject([
      { role: 'user', content: '{"task":"What is two and two?"}' },
      { role: 'assistant', content: 'Four.' },
    ]);
    const { body } = await get(`/api/conversations/${job.conversation_id}`);
    expect(body).toMatchObject({ status: 'completed', agent_id: 'thinker' });
  });

  test('has the answer as data too, with a schema', async () => {
    const { task, messages } = await newThinker(world.platform, { model });
    world.provider.script(answering('{"sum":4}'));
    const schema = { type: 'object', required: ['sum'], properties: { sum: { type: 'integer' } } };

    const job = await task('What is two and two?', { schema });

    expect(job.output).toEqual({ answer: '{"sum":4}', output: { sum: 4 } });
    expect(await messages(job.conversation_id)).toHaveLength(2);
  });
});

test.each([
  ['task', {}],
  ['task', { task: ' ' }],
  ['task', { task: 7 }],
  ['max_turns', { task: 'x', max_turns: 0 }],
  ['schema', { task: 'x', schema: 'string' }],
  ['timeout_ms', { task: 'x', timeout_ms: 999 }],
  ['timeout_ms', { task: 'x', timeout_ms: 86_400_001 }],
])('agent/run-task refuses a wrong %s with 400: %j', async (field, input) => {
  const { post, named } = await newThinker(world.platform);

  expectInvalid(await post(`/api/${runTask}`, input, named), field);
});

test('a task has the time that it asks for, in each attempt', async () => {
  const { task } = await newThinker(world.platform);
  const { promise: until, resolve: answer } = Promise.withResolvers<void>();
  world.provider.script(inTurn({ text: 'Too late.', until }, { text: 'In time.' }));

  const job = await task('Wait', { timeout_ms: 1_000 });

  answer();
  expect(job).toMatchObject({ status: 'completed', attempt: 2, output: { answer: 'In time.' } });
});

test('a schedule runs a task of its agent, each run in a conversation of its own', async () => {
  const { post, jobIn, messages } = await newThinker(world.platform);
  world.provider.script(answering('Good morning.'));
  const { body: schedule } = await post('/api/scheduled-jobs', {
    ...{ agent_id: 'thinker', cron_expression: '0 7 * * *' },
    ...{ skill_category: 'agent', skill_name: 'run-task', skill_version: 'v1.0' },
    input: { task: 'Say good morning' },
  });

  const ran = await post(`/api/scheduled-jobs/${schedule.id}/run`);
  const { body: job } = await jobIn(ran.body.job_id, 'completed', 'failed');

  expect(job).toMatchObject({
    ...{ status: 'completed', trigger_type: 'scheduled', output: { answer: 'Good morning.' } },
  });
  expect(await messages(job.conversation_id)).toHaveLength(2);
});
