/** What only Bedrock has; the suite of all providers is `models.test.ts`. */
import { expect, test } from 'vitest';
import { AnswerSoFar } from '../answer.ts';
import type { DialogueMessage, ModelCall } from '../model.ts';
import { converse } from './converse.ts';

const claude = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';

function bodyOf(name: string, changes: Partial<ModelCall> = {}) {
  const call: ModelCall = {
    model: `bedrock/${name}`,
    settings: undefined,
    system: 'Be brief.',
    messages: [{ role: 'user', text: 'Hello?' }],
    tools: [],
    maxOutputTokens: 4_000,
    signal: new AbortController().signal,
    onText() {},
    ...changes,
  };
  return converse.bodyOf(call, name);
}

const call = { id: 'call.of/another:provider', name: 'weather', input: '{"city":"Köln"}' };
const dialogue: DialogueMessage[] = [
  { role: 'user', text: 'Hello?' },
  { role: 'assistant', text: '', toolCalls: [call] },
  { role: 'tool', callId: call.id, name: call.name, text: 'It rains.', isError: false },
];
const weather = { name: 'weather', description: '', parameters: { type: 'object' } };

test('calls and their results are told as text where no tools are offered', () => {
  expect(bodyOf('amazon.nova-pro-v1:0', { messages: dialogue })['messages']).toEqual([
    { role: 'user', content: [{ text: 'Hello?' }] },
    { role: 'assistant', content: [{ text: '(weather {"city":"Köln"})' }] },
    { role: 'user', content: [{ text: 'It rains.' }] },
  ]);
});

test("Mistral's models get ids of nine letters and digits", () => {
  const body = bodyOf('mistral.mistral-large-2407-v1:0', { messages: dialogue, tools: [weather] });

  const ids = JSON.stringify(body).match(/(?<="toolUseId":")[^"]+/g) ?? [];
  expect(ids).toEqual([expect.stringMatching(/^[a-zA-Z0-9]{9}$/), ids[0]]);
});

test("only Claude's prompts are marked to be cached", () => {
  expect(bodyOf(claude, { messages: dialogue, tools: [weather] })).toMatchObject({
    system: [{ text: 'Be brief.' }, { cachePoint: { type: 'default' } }],
    messages: [
      { content: [{ text: 'Hello?' }, { cachePoint: { type: 'default' } }] },
      { role: 'assistant' },
      { content: [{ toolResult: {} }, { cachePoint: { type: 'default' } }] },
    ],
  });
  const others = bodyOf('amazon.nova-pro-v1:0', { messages: dialogue, tools: [weather] });
  expect(JSON.stringify(others)).not.toContain('cachePoint');
});

test.each<[string, Partial<ModelCall>, unknown]>([
  [
    claude,
    { effort: 'low', thinking: 'budget' },
    { thinking: { type: 'enabled', budget_tokens: 1_024 } },
  ],
  [
    'anthropic.claude-opus-5',
    { effort: 'high', thinking: 'adaptive' },
    { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
  ],
  ['openai.gpt-oss-120b-1:0', { effort: 'max' }, { reasoning_effort: 'high' }],
  [
    'us.amazon.nova-2-lite-v1:0',
    { effort: 'medium' },
    { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'medium' } },
  ],
  ['meta.llama4-maverick-17b-instruct-v1:0', { effort: 'high' }, undefined],
  [claude, {}, undefined],
])('%s is told its effort in its own form: %o', (name, changes, expected) => {
  expect(bodyOf(name, changes)['additionalModelRequestFields']).toEqual(expected);
});

test('an answer that ends for a malformed call is not finished, and has its usage', () => {
  const answer = new AnswerSoFar(() => {});
  const reader = converse.readerFor(answer);
  for (const event of [
    { type: 'contentBlockStart', contentBlockIndex: 0, start: { toolUse: { toolUseId: 'a' } } },
    { type: 'messageStop', stopReason: 'malformed_tool_use' },
    { type: 'metadata', usage: { inputTokens: 7, outputTokens: 2 } },
  ]) {
    reader.take(event);
  }

  expect(reader.state).toMatchObject({
    givenUp: 'malformed_tool_use',
    usage: { prompt: 7, completion: 2 },
  });
});
