import { expect, test } from 'vitest';
import { contentOf, openingWords, toolUseOf } from './content.ts';

const message = (content: string) => ({
  ...{ id: 'm', conversation_id: 'c', role: 'user' as const, created_at: '2026-01-01T00:00:00Z' },
  kind: 'message' as const,
  content,
  model: null,
});
const task = 'Write down in one sentence when the harbour is open, and when it is not.';

test.each([
  ['Hello', { kind: 'text', text: 'Hello' }],
  [JSON.stringify({ task }), { kind: 'text', text: task, name: 'task' }],
  ['{"task":"Short?"}', { kind: 'text', text: 'Short?', name: 'task' }],
  ['{"task":"Look.","files":["f"]}', { kind: 'text', text: 'Look.', name: 'task', files: ['f'] }],
  ['{"ms":5000}', { kind: 'data', value: { ms: 5000 } }],
  ['{"a":1,"b":"c"}', { kind: 'data', value: { a: 1, b: 'c' } }],
  ['[1,2]', { kind: 'data', value: [1, 2] }],
  ['{"cut": "of', { kind: 'text', text: '{"cut": "of' }],
  ['17', { kind: 'text', text: '17' }],
])('%s is shown as %o', (content, expected) => {
  expect(contentOf(message(content))).toEqual(expected);
});

test('a tool’s message tells what was called, and one that was cut is only text', () => {
  const use = { tool: 'util/v1.0/echo', input: { text: 'x' }, output: { text: 'x' } };

  expect(toolUseOf(message(JSON.stringify(use)))).toEqual(use);
  expect(toolUseOf(message(JSON.stringify(use).slice(0, 30)))).toBeUndefined();
  expect(toolUseOf(message('{"something":"else"}'))).toBeUndefined();
});

test.each([
  [null, ''],
  ['Hello', 'Hello'],
  ['{"task":"When is it open?"}', 'When is it open?'],
  ['{"text":"one\\ntwo \\"three\\" and so', 'one\ntwo "three" and so'],
  ['{"text":"cut within \\u00', 'cut within \\u00'],
  ['{"task":"What is it?","files":["0199', 'What is it?'],
  ['{"ms":5000}', '{"ms":5000}'],
  ['{"text":"short"}', 'short'],
  ['{"shop":"north","pages":6}', '{"shop":"north","pages":6}'],
  ['{"url":"https://example.com/orders","method":"GET"}', 'https://example.com/orders'],
  ['{"text":""}', '{"text":""}'],
])('%s opens with %s', (opening, words) => {
  expect(openingWords(opening)).toBe(words);
});
