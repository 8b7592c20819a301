/** What Gemini has that no other protocol has. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  answering,
  type ScriptedProvider,
  startScriptedProvider,
} from '../../../../test/support/scripted-provider.ts';
import { systemClock } from '../../../kernel/clock.ts';
import type { DialogueMessage, ModelAnswer, ModelCall } from '../model.ts';
import { ProviderModels } from '../models.ts';

let provider: ScriptedProvider;
beforeAll(async () => {
  provider = await startScriptedProvider();
});
afterAll(() => provider.close());

const question: DialogueMessage = { role: 'user', text: 'Hello?' };
const tools = [{ name: 'weather', description: 'Tells it.', parameters: { type: 'object' } }];
const silence = { firstTokenMs: 10_000, betweenMs: 10_000, keepAliveMs: 60_000 };

function ask(changes: Partial<ModelCall> = {}): Promise<ModelAnswer> {
  return new ProviderModels({ clock: systemClock, silence }).call({
    model: 'gemini/gemini-3.1-pro',
    settings: { apiKey: 'k', baseUrl: `${provider.url}/v1beta` },
    system: 'Be brief.',
    messages: [question],
    tools: [],
    maxOutputTokens: 4_000,
    signal: new AbortController().signal,
    onText() {},
    ...changes,
  });
}

const lastBody = () => provider.requests.at(-1)?.body;
const result = (callId: string): DialogueMessage => ({
  role: 'tool',
  callId,
  name: 'weather',
  text: 'rain',
  isError: false,
});

test('the signature of a call goes back with it, and calls of other models have the text for them', async () => {
  const thinking = { text: 'Hm.', signature: 'c2lnbmVk' };
  const toolCalls = ['a', 'b'].map((id) => ({ id, name: 'weather', input: { id } }));
  provider.script(() => ({ thinking, text: 'See.', toolCalls }));
  const { message, finish } = await ask({ tools });
  const kept: DialogueMessage = JSON.parse(JSON.stringify(message));
  const messages = [question, kept, result('a'), result('b')];
  provider.script(answering('Rain.'));

  await ask({ tools, messages, thinking: 'adaptive' });
  const [, same, results] = lastBody().contents;
  await ask({ tools, messages, thinking: 'adaptive', model: 'gemini/gemini-4' });
  const [, another] = lastBody().contents;

  expect({ text: message.text, finish }).toEqual({ text: 'See.', finish: 'tool-calls' });
  const calls = toolCalls.map(({ id, name, input }) => ({
    functionCall: { id, name, args: input },
  }));
  expect(same).toEqual({
    role: 'model',
    parts: [{ text: 'See.' }, { ...calls[0], thoughtSignature: 'c2lnbmVk' }, calls[1]],
  });
  expect(results.parts).toHaveLength(2);
  expect(results.parts[0].functionResponse.id).toBe('a');
  const { id: _, ...unnamed } = calls[0]!.functionCall;
  expect(another.parts[1]).toEqual({
    functionCall: unnamed,
    thoughtSignature: 'skip_thought_signature_validator',
  });
});

test('an id that Gemini has not given is not sent to it', async () => {
  const toolCalls = [{ id: '', name: 'weather', input: {} }];
  provider.script(() => ({ toolCalls }));
  const { message } = await ask({ tools });
  const { id } = message.toolCalls[0]!;
  provider.script(answering('Rain.'));

  await ask({ tools, messages: [question, message, result(id)] });

  expect(id).toMatch(/^call_/);
  const [, { parts }, results] = lastBody().contents;
  expect(parts).toEqual([{ functionCall: { name: 'weather', args: {} } }]);
  expect(results.parts[0].functionResponse).toEqual({
    name: 'weather',
    response: { result: 'rain' },
  });
});

test.each([
  ['adaptive', [{ inlineData: { mimeType: 'image/png', data: 'cGlj' } }], []],
  ['budget', undefined, [{ inlineData: { mimeType: 'image/png', data: 'cGlj' } }]],
] as const)(
  'results are in a content of their own, and the files of tools within them for a model that is %s',
  async (thinking, inResult, inMessage) => {
    const picture = { name: 'a.png', mediaType: 'image/png', base64: 'cGlj' };
    const call = { id: 'a', name: 'weather', input: '{}' };
    const messages: DialogueMessage[] = [
      question,
      { role: 'assistant', text: '', toolCalls: [call, { ...call, id: 'b' }] },
      result('a'),
      result('b'),
      { role: 'user', text: '[The files of the messages above]', contents: [picture] },
      { role: 'user', text: 'And this?', files: [], contents: [picture] },
    ];
    provider.script(answering('Rain.'));

    await ask({ tools, messages, thinking });

    const response = { name: 'weather', response: { result: 'rain' } };
    expect(lastBody().contents.slice(2)).toEqual([
      {
        role: 'user',
        parts: [
          { functionResponse: response },
          { functionResponse: { ...response, parts: inResult } },
        ],
      },
      {
        role: 'user',
        parts: [
          ...inMessage,
          { text: '[The files of the messages above]' },
          { inlineData: { mimeType: 'image/png', data: 'cGlj' } },
          { text: 'And this?' },
        ],
      },
    ]);
  },
);

test('thoughts are tokens of the answer', async () => {
  const usage = { prompt: 100, completion: 30, cacheRead: 40, reasoning: 20 };
  provider.script(answering('Hi.', { usage, thinking: { text: 'Hm.', signature: 's' } }));

  const answer = await ask();

  expect(answer).toMatchObject({ message: { text: 'Hi.' }, usage });
});

test.each([
  ['adaptive', 'high', { thinkingLevel: 'high' }],
  ['adaptive', 'none', { thinkingLevel: 'low' }],
  ['budget', 'none', { thinkingBudget: 0 }],
  ['budget', 'medium', { thinkingBudget: 1_600 }],
] as const)('a model that thinks by %s is told the effort %s', async (thinking, effort, config) => {
  provider.script(answering('Hi.'));

  await ask({ thinking, effort });

  expect(lastBody().generationConfig.thinkingConfig).toEqual(config);
});

test.each([
  ['none', 4_000],
  ['high', 1_000],
] as const)(
  'no thinking is forbidden of a model that always thinks: %s',
  async (effort, maxOutputTokens) => {
    provider.script(answering('Hi.'));

    await ask({ model: 'gemini/gemini-2.5-pro', thinking: 'budget', effort, maxOutputTokens });

    expect(lastBody().generationConfig).not.toHaveProperty('thinkingConfig');
  },
);

test('a schema is left out beside tools, where Gemini refuses it', async () => {
  provider.script(answering('{}'));

  await ask({ tools, schema: { type: 'object' } });

  expect(lastBody().generationConfig).not.toHaveProperty('responseMimeType');
});

test.each([
  [{ promptFeedback: { blockReason: 'SAFETY' } }, 'content-filter'],
  [{ candidates: [{ finishReason: 'PROHIBITED_CONTENT' }] }, 'content-filter'],
  [{ candidates: [{ finishReason: 'IMAGE_SAFETY' }] }, 'content-filter'],
  [{ candidates: [{ finishReason: 'FINISH_REASON_UNSPECIFIED' }] }, 'other'],
])('an answer of %j ends with %s', async (body, finish) => {
  provider.script(() => ({ fault: { status: 200, body } }));

  expect((await ask()).finish).toBe(finish);
});

test.each([
  ['7s', {}, 7_000],
  ['0.5s', {}, 500],
  ['7s', { 'retry-after': '3' }, 3_000],
  ['soon', {}, null],
  [7, {}, null],
])('a RetryInfo of %j with the headers %o is a delay of %s ms', async (retryDelay, headers, ms) => {
  const info = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay };
  const details = [null, { '@type': 'type.googleapis.com/google.rpc.QuotaFailure' }, info];
  const error = { code: 429, message: 'Quota exceeded', status: 'RESOURCE_EXHAUSTED', details };
  provider.script(() => ({ fault: { status: 429, headers, body: { error } } }));

  await expect(ask()).rejects.toMatchObject({ fault: 'unavailable', retryAfterMs: ms });
});

test.each(['MALFORMED_FUNCTION_CALL', 'OTHER', 'TOO_MANY_TOOL_CALLS'])(
  'an answer that ends with %s was not finished, and has its usage',
  async (finishReason) => {
    const body = {
      candidates: [{ content: { parts: [{ text: 'Half' }] }, finishReason }],
      usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2 },
    };
    provider.script(() => ({ fault: { status: 200, body } }));

    await expect(ask()).rejects.toMatchObject({
      fault: 'unavailable',
      message: expect.stringContaining(finishReason),
      text: 'Half',
      usage: { prompt: 7, completion: 2 },
    });
  },
);
