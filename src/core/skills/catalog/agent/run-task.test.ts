import { describe, expect, test } from 'vitest';
import { cutShort, fakeModel, tryThinking } from '../../../../../test/support/fake-model.ts';
import { allows } from '../../../../../test/support/try-skill.ts';
import runTask from './run-task.ts';

test('the task is all that the user says, with all tools of the agent and what was said before', async () => {
  const model = fakeModel(() => 'Three chairs.');

  expect(await tryThinking(runTask, { task: 'Count the chairs.' }, model)).toEqual({
    answer: 'Three chairs.',
  });
  expect(JSON.parse(JSON.stringify(model.requests))).toEqual([
    { prompt: 'Count the chairs.', tools: true, continues: true },
  ]);
  expect(runTask.continuesConversations).toBe(true);
});

test('the files of a task go with it', async () => {
  const model = fakeModel(() => 'A harbour.');

  await tryThinking(runTask, { task: 'What is it?', files: ['https://example.com/a.png'] }, model);

  expect(model.requests[0]).toMatchObject({ attachments: ['https://example.com/a.png'] });
  expect(allows(runTask.parameters, { task: 'Look.', files: Array(21).fill('a') })).toBe(false);
});

test('with a schema the answer comes as data too', async () => {
  const schema = { type: 'object', properties: { chairs: { type: 'integer' } } };
  const model = fakeModel(() => ({ chairs: 3 }));

  const given = await tryThinking(runTask, { task: 'Count.', schema, max_turns: 7 }, model);

  expect(given).toEqual({ answer: '{"chairs":3}', output: { chairs: 3 } });
  expect(model.requests[0]).toMatchObject({ schema, maxTurns: 7 });
});

test('an answer that breaks off says so, with a schema as well', async () => {
  const task = 'Count.';
  const cut = (answer: string | object) => cutShort(fakeModel(() => answer));

  expect(await tryThinking(runTask, { task }, cut('Three ch'))).toEqual({
    answer: 'Three ch',
    is_cut: true,
  });
  expect(await tryThinking(runTask, { task, schema: {} }, cut({ chairs: 3 }))).toEqual({
    answer: '{"chairs":3}',
    output: { chairs: 3 },
    is_cut: true,
  });
});

test('what goes wrong with the model ends the run as it is', async () => {
  const refusal = new Error('No credentials');

  const running = tryThinking(
    runTask,
    { task: 'Count.' },
    fakeModel(() => Promise.reject(refusal)),
  );

  await expect(running).rejects.toBe(refusal);
});

describe('is refused', () => {
  test.each([
    ['no task', {}],
    ['an empty task', { task: ' \n' }],
    ['a task of more than 65,536 characters', { task: 'x'.repeat(65_537) }],
    ['a schema that is no object', { task: 'x', schema: true }],
    ['no turn', { task: 'x', max_turns: 0 }],
    ['more than a hundred turns', { task: 'x', max_turns: 101 }],
    ['less than a second', { task: 'x', timeout_ms: 999 }],
    ['more than 24 hours', { task: 'x', timeout_ms: 86_400_001 }],
    ['a part of a millisecond', { task: 'x', timeout_ms: 1000.5 }],
  ])('%s', (_what, input) => {
    expect(allows(runTask.parameters, input)).toBe(false);
  });
});
