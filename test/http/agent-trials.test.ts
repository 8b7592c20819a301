/** Tasks for an agent with fields that are not saved (docs/agents.md). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { answering, inTurn } from '../support/scripted-provider.ts';
import { newThinker, startThinkers, type Thinkers } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const path = '/api/agents/thinker/trials';
const waiting = { prefer: 'wait=30' };
const overrides = { instructions: 'Answer like a sailor.', model: 'anthropic/trial' };
const asked = () => world.provider.requests.at(-1);

test('a trial has its own instructions and model; the agent and other runs do not', async () => {
  const { post, get, task } = await newThinker(world.platform, { instructions: 'Be brief.' });
  world.provider.script(answering('Aye.'));

  const { status, body: job } = await post(
    path,
    { agent: overrides, input: { task: 'Is the harbour open?' } },
    waiting,
  );

  expect(status).toBe(200);
  expect(job).toMatchObject({
    ...{ status: 'completed', agent_id: 'thinker', skill_name: 'run-task' },
    ...{ input: { task: 'Is the harbour open?' }, output: { answer: 'Aye.' } },
    ...{ agent_overrides: overrides, is_trial: true },
  });
  expect(asked()).toMatchObject({
    model: 'trial',
    system: expect.stringMatching(/^Answer like a sailor\./),
  });
  expect((await get('/api/agents/thinker')).body.instructions).toBe('Be brief.');

  const plain = await task('Is the harbour open?');

  expect(plain).toMatchObject({ agent_overrides: null, is_trial: false });
  expect(asked()).toMatchObject({ model: 'test', system: expect.stringMatching(/^Be brief\./) });
  const { body: list } = await get('/api/jobs?include=timing');
  expect(list.data.map((one: { is_trial: boolean }) => one.is_trial)).toEqual([false, true]);
});

test('a trial continues a conversation, and what it leaves out is the agent’s', async () => {
  const { post, task } = await newThinker(world.platform, { instructions: 'Be brief.' });
  world.provider.script(answering('Yes.'));
  const { conversation_id } = await task('Is it open?');

  const { body: job } = await post(
    path,
    { agent: { model: 'openai/other' }, input: { task: 'And now?' } },
    { ...waiting, 'x-conversation-id': conversation_id, 'x-user-id': 'ada' },
  );

  expect(job).toMatchObject({ conversation_id, user_id: 'ada', status: 'completed' });
  expect(asked()).toMatchObject({
    model: 'other',
    system: expect.stringMatching(/^Be brief\./),
    messages: expect.arrayContaining([expect.objectContaining({ content: 'Is it open?' })]),
  });
});

test('a trial has its own settings of the model', async () => {
  const { post } = await newThinker(world.platform);
  world.provider.script(answering('Aye.'));
  const agent = { model_settings: { temperature: 0.5 }, fallback_models: ['openai/second'] };

  const { body: job } = await post(path, { agent, input: { task: 'x' } }, waiting);

  expect(job).toMatchObject({ status: 'completed', agent_overrides: agent });
  expect(asked()?.body.temperature).toBe(0.5);
});

test('a trial reads the memory of the agent and does not change it', async () => {
  const { post, memories } = await newThinker(world.platform);
  await post('/api/agents/thinker/memories', { content: 'The harbour opens at six' });
  const remember = { toolCalls: [{ name: 'remember', input: { content: 'tried' } }] };
  const recall = { toolCalls: [{ name: 'recall', input: { query: 'harbour' } }] };
  world.provider.script(inTurn(remember, recall, { text: 'Aye.' }));

  const { body: job } = await post(path, { agent: overrides, input: { task: 'x' } }, waiting);

  expect(job.status).toBe('completed');
  expect(asked()?.tools).not.toContain('remember');
  expect(asked()?.toolResults.join()).toContain('The harbour opens at six');
  expect(await memories()).toMatchObject([{ content: 'The harbour opens at six' }]);
});

test('a trial remembers, updates and forgets nothing, neither in its model’s tools nor in its code', async () => {
  const { post, memories } = await newThinker(world.platform, { skills: ['staged/*'] });
  const salary = 'The harbour master earns 5,000';
  const { body: known } = await post('/api/agents/thinker/memories', { content: salary });
  const raised = 'The harbour master earns 6,000';
  const steps = [
    { remember: { content: raised } },
    { forget: known.id },
    { remember: { content: 'new' } },
  ];
  const byCode = steps.map((step) => ({
    toolCalls: [{ name: 'staged__memory__v1_0', input: { attempts: [[step]] } }],
  }));
  const byTools = [
    { toolCalls: [{ name: 'remember', input: { content: raised } }] },
    { toolCalls: [{ name: 'remember', input: { content: 'new' } }] },
    { toolCalls: [{ name: 'forget', input: { id: known.id } }] },
  ];
  world.provider.script(inTurn(...byCode, ...byTools, { text: 'Aye.' }));
  const before = world.provider.requests.length;

  const { body: job } = await post(path, { agent: overrides, input: { task: 'x' } }, waiting);

  expect(job.status).toBe('completed');
  const results = world.provider.requests
    .slice(before + 1)
    .map(({ toolResults }) => toolResults.at(-1));
  expect(results).toHaveLength(6);
  for (const result of results.slice(0, 3)) expect(result).toMatch(/may only read/);
  expect(await memories()).toEqual([known]);
});

test('a retry of a trial is the same trial', async () => {
  const { post, jobIn } = await newThinker(world.platform);
  world.provider.script(() => ({ fault: { status: 400 } }));
  const { body: failed } = await post(path, { agent: overrides, input: { task: 'x' } }, waiting);
  world.provider.script(answering('Aye.'));

  const { body: again } = await post(`/api/jobs/${failed.job_id}/retry`);
  const { body: job } = await jobIn(again.job_id, 'completed');

  expect(failed.status).toBe('failed');
  expect(job.agent_overrides).toEqual(overrides);
});

test('two trials with one Idempotency-Key are one job, with other fields a conflict', async () => {
  const { post } = await newThinker(world.platform);
  world.provider.script(answering('Aye.'));
  const keyed = { ...waiting, 'idempotency-key': 'once' };
  const input = { task: 'x' };

  const first = await post(path, { agent: overrides, input }, keyed);
  const second = await post(path, { agent: overrides, input }, keyed);

  expect(second.body.job_id).toBe(first.body.job_id);
  const other = await post(path, { agent: { instructions: 'Other.' }, input }, keyed);
  expectRefusal(other, 422, 'idempotency_key_reused');
});

test.each([
  ['agent', { input: { task: 'x' } }],
  ['agent', { agent: {}, input: { task: 'x' } }],
  ['agent.skills', { agent: { skills: ['*'] }, input: { task: 'x' } }],
  ['agent.model', { agent: { model: 'gpt' }, input: { task: 'x' } }],
  ['agent.instructions', { agent: { instructions: '🏔'.repeat(16_385) }, input: { task: 'x' } }],
  ['agent.fallback_models.0', { agent: { fallback_models: ['gpt'] }, input: { task: 'x' } }],
  [
    'agent.model_settings.max_output_tokens',
    { agent: { model_settings: { max_output_tokens: 900_000 } }, input: { task: 'x' } },
  ],
  ['input.task', { agent: overrides, input: {} }],
  ['input', { agent: overrides }],
  ['more', { agent: overrides, input: { task: 'x' }, more: 1 }],
])('a trial without a valid %s is refused: %j', async (field, body) => {
  const { post } = await newThinker(world.platform);

  expectInvalid(await post(path, body), field);
});

test('a trial needs the scope of agents, and an agent that takes work', async () => {
  const body = { agent: overrides, input: { task: 'x' } };
  const limited = await newThinker(world.platform, {}, { scopes: ['util'] });
  const { post, put } = await newThinker(world.platform);

  expectRefusal(await limited.post(path, body), 403, 'insufficient_scope');
  expectRefusal(await post('/api/agents/unknown/trials', {}), 404, 'not_found');
  await put('/api/agents/thinker', { status: 'paused' });
  expectRefusal(await post(path, body), 422, 'agent_paused');
});
