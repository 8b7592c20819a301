import { expect, test } from 'vitest';
import type { DialogueMessage } from './model.ts';
import { type Opaque, promptOf } from './prompt.ts';

const model = 'anthropic/claude';
const call = { id: 'c1', name: 'web_fetch', input: '{"url": "x"}' };

const contentOf = (protocol: 'chat' | 'messages', message: DialogueMessage) =>
  promptOf(protocol, { model, system: '', messages: [message] })[0]?.content;

test('a dialogue keeps its order, and the results of a turn are one message', () => {
  const prompt = promptOf('chat', {
    model,
    system: 'Be brief.',
    messages: [
      { role: 'user', text: 'Hello?' },
      { role: 'assistant', text: 'Let me see.', toolCalls: [call, { ...call, id: 'c2' }] },
      { role: 'tool', callId: 'c1', name: 'web_fetch', text: 'one', isError: false },
      { role: 'tool', callId: 'c2', name: 'web_fetch', text: 'two', isError: true },
      { role: 'user', text: 'And?' },
    ],
  });

  expect(prompt.map(({ role, content }) => [role, content.length])).toEqual([
    ['system', 'Be brief.'.length],
    ['user', 1],
    ['assistant', 3],
    ['tool', 2],
    ['user', 1],
  ]);
});

const deep = `${'{"a":'.repeat(30_000)}1${'}'.repeat(30_000)}`;

test.each([
  ['{"a": 1}', '{"a": 1}', { a: 1 }],
  ['', '{}', {}],
  [' \n', '{}', {}],
  ['{"a": ', { invalid_json: '{"a": ' }, { invalid_json: '{"a": ' }],
  ['[1]', { invalid_json: '[1]' }, { invalid_json: '[1]' }],
  ['null', { invalid_json: 'null' }, { invalid_json: 'null' }],
  ['x'.repeat(2_000), { invalid_json: 'x'.repeat(1_000) }, { invalid_json: 'x'.repeat(1_000) }],
  [deep, { invalid_json: deep.slice(0, 1_000) }, { invalid_json: deep.slice(0, 1_000) }],
])('arguments %s are sent back in an accepted form', (input, chat, messages) => {
  const message = { role: 'assistant', text: '', toolCalls: [{ ...call, input }] } as const;

  expect(contentOf('chat', message)).toMatchObject([{ input: chat }]);
  expect(contentOf('messages', message)).toMatchObject([{ input: messages }]);
});

test.each([
  ['web_fetch', 'web_fetch'],
  ['no such/tool!', 'no_such_tool_'],
  ['', '_'],
  ['x'.repeat(5_000), 'x'.repeat(64)],
])('the name %s of a tool is sent back in an accepted form', (name, expected) => {
  const message = { role: 'assistant', text: '', toolCalls: [{ ...call, name }] } as const;

  expect(contentOf('chat', message)).toMatchObject([{ toolName: expected }]);
});

test('signed parts keep their places', () => {
  const signed = { anthropic: { signature: 's' } };
  const opaque: Opaque = {
    model,
    parts: [
      { type: 'reasoning', text: 'Hm.', signed },
      { type: 'text', length: 3 },
      { type: 'reasoning', text: 'Well.', signed },
      { type: 'text', length: 2 },
      { type: 'tool-call', id: 'c1', signed },
    ],
  };

  const content = contentOf('messages', {
    role: 'assistant',
    text: 'oneto',
    toolCalls: [call],
    opaque,
  });

  expect(content).toEqual([
    { type: 'reasoning', text: 'Hm.', providerOptions: signed },
    { type: 'text', text: 'one' },
    { type: 'reasoning', text: 'Well.', providerOptions: signed },
    { type: 'text', text: 'to' },
    {
      type: 'tool-call',
      toolCallId: 'c1',
      toolName: 'web_fetch',
      input: { url: 'x' },
      providerOptions: signed,
    },
  ]);
});

test.each([
  ['another model', { model: 'anthropic/other', parts: [] }],
  ['another text', { model, parts: [{ type: 'text', length: 2 }] }],
  ['other calls', { model, parts: [{ type: 'text', length: 3 }] }],
  ['something else', 'nonsense'],
])('signed parts of %s are left out', (_what, opaque) => {
  const message = { role: 'assistant', text: 'one', toolCalls: [call], opaque } as const;

  expect(contentOf('messages', message)).toMatchObject([
    { type: 'text', text: 'one' },
    { type: 'tool-call' },
  ]);
});
