import { expect, test } from 'vitest';
import {
  acceptableInput,
  acceptableInputText,
  acceptableName,
  type Opaque,
  partsOfTurn,
  spokenPartsOf,
} from './prompt.ts';

const model = 'anthropic/claude';
const call = { id: 'c1', name: 'web_fetch', input: '{"url": "x"}' };

const deep = `${'{"a":'.repeat(30_000)}1${'}'.repeat(30_000)}`;

test.each([
  ['{"a": 1}', '{"a": 1}', { a: 1 }],
  ['', '{}', {}],
  [' \n', '{}', {}],
  ['{"a": ', null, { invalid_json: '{"a": ' }],
  ['[1]', null, { invalid_json: '[1]' }],
  ['null', null, { invalid_json: 'null' }],
  ['x'.repeat(2_000), null, { invalid_json: 'x'.repeat(1_000) }],
  [deep, null, { invalid_json: deep.slice(0, 1_000) }],
])('arguments %s are sent back in an accepted form', (input, text, object) => {
  expect(acceptableInputText(input)).toBe(text ?? JSON.stringify(object));
  expect(acceptableInput(input)).toEqual(object);
});

test.each([
  ['web_fetch', 'web_fetch'],
  ['no such/tool!', 'no_such_tool_'],
  ['', '_'],
  ['x'.repeat(5_000), 'x'.repeat(64)],
])('the name %s of a tool is sent back in an accepted form', (name, expected) => {
  expect(acceptableName(name)).toBe(expected);
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

  const content = partsOfTurn(model, {
    role: 'assistant',
    text: 'oneto',
    toolCalls: [call],
    opaque,
  });

  expect(content).toEqual([
    { type: 'reasoning', text: 'Hm.', signed },
    { type: 'text', text: 'one' },
    { type: 'reasoning', text: 'Well.', signed },
    { type: 'text', text: 'to' },
    { type: 'tool-call', call, signed },
  ]);
});

test.each([
  ['another model', { model: 'anthropic/other', parts: [] }],
  ['another text', { model, parts: [{ type: 'text', length: 2 }] }],
  ['other calls', { model, parts: [{ type: 'text', length: 3 }] }],
  ['something else', 'nonsense'],
])('signed parts of %s are left out', (_what, opaque) => {
  const message = { role: 'assistant', text: 'one', toolCalls: [call], opaque } as const;

  expect(partsOfTurn(model, message)).toMatchObject([
    { type: 'text', text: 'one' },
    { type: 'tool-call' },
  ]);
});

test('texts of white space, and reasoning that nothing follows, are left out for providers that refuse them', () => {
  const signed = { anthropic: { signature: 's' } };
  const said = (text: string, toolCalls = [call]) => {
    const opaque: Opaque = {
      model,
      parts: [
        { type: 'reasoning', text: 'Hm.', signed },
        { type: 'text', length: text.length },
        ...toolCalls.map(({ id }) => ({ type: 'tool-call', id }) as const),
      ],
    };
    return spokenPartsOf(model, { role: 'assistant', text, toolCalls, opaque });
  };

  expect(said('\n\n').map(({ type }) => type)).toEqual(['reasoning', 'tool-call']);
  expect(said(' Hi.').map(({ type }) => type)).toEqual(['reasoning', 'text', 'tool-call']);
  expect(said('\n', [])).toEqual([]);
});
