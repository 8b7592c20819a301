import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  answering,
  type ScriptedProvider,
  startScriptedProvider,
} from '../../../test/support/scripted-provider.ts';
import { systemClock } from '../../kernel/clock.ts';
import type { ModelCall, ModelError } from './model.ts';
import { ProviderModels } from './models.ts';
import { chat } from './protocols/chat.ts';
import { converse } from './protocols/converse.ts';
import { gemini } from './protocols/gemini.ts';
import { messages } from './protocols/messages.ts';
import { responses } from './protocols/responses.ts';

let provider: ScriptedProvider;
beforeAll(async () => {
  provider = await startScriptedProvider();
});
afterAll(() => provider.close());

function ask(model: string, changes: Partial<ModelCall> = {}) {
  const models = new ProviderModels({
    clock: systemClock,
    silence: { firstTokenMs: 10_000, betweenMs: 10_000, keepAliveMs: 60_000 },
  });
  return models.call({
    model,
    settings: {
      apiKey: 'key',
      protocol: model.startsWith('azure/') ? 'chat' : null,
      baseUrl: model.startsWith('anthropic/') ? provider.anthropicBaseUrl : provider.openaiBaseUrl,
    },
    system: '',
    messages: [{ role: 'user', text: 'Hello?' }],
    tools: [],
    maxOutputTokens: 4_000,
    signal: new AbortController().signal,
    onText() {},
    ...changes,
  });
}

async function bodySent(model: string, changes: Partial<ModelCall>) {
  provider.script(answering('Hello.'));
  await ask(model, changes);
  return provider.requests.at(-1)?.body;
}

async function failureOf(call: Promise<unknown>): Promise<ModelError> {
  return call.then(
    () => expect.unreachable('there is an answer'),
    (error: ModelError) => error,
  );
}

test.each<[string, Partial<ModelCall>, string]>([
  ['azure/o3', {}, 'max_completion_tokens'],
  ['azure/our-deployment', { effort: 'low' }, 'max_completion_tokens'],
  ['azure/our-deployment', {}, 'max_tokens'],
  ['ollama/o3', { effort: 'low' }, 'max_tokens'],
])('the tokens of an answer of %s (%o) are its %s', async (model, changes, field) => {
  expect(await bodySent(model, changes)).toHaveProperty(field, 4_000);
});

describe('the effort', () => {
  test.each(['openai/some-model', 'ollama/some-model', 'openai/o3'])(
    'is reasoning_effort in chat completions: %s',
    async (model) => {
      expect(await bodySent(model, { effort: 'high' })).toMatchObject({ reasoning_effort: 'high' });
      expect(await bodySent(model, {})).not.toHaveProperty('reasoning_effort');
    },
  );

  test.each([
    ['low', 1_024],
    ['medium', 1_600],
    ['high', 2_400],
    ['max', 3_400],
  ] as const)('is tokens to think with in messages: %s', async (effort, budget) => {
    expect(await bodySent('anthropic/claude-sonnet-4-5', { effort })).toMatchObject({
      thinking: { type: 'enabled', budget_tokens: budget },
      max_tokens: 4_000,
    });
  });

  test('is an effort in messages where the model decides how long it thinks', async () => {
    const model = 'anthropic/claude-opus-4-7';
    const thinking = 'adaptive';
    expect(await bodySent(model, { effort: 'high', thinking })).toMatchObject({
      thinking: { type: 'adaptive' },
      output_config: { effort: 'high' },
      max_tokens: 4_000,
    });
    expect(await bodySent(model, { effort: 'none', thinking })).toMatchObject({
      thinking: { type: 'disabled' },
    });
  });

  test.each([
    ['the answer has too few tokens', { maxOutputTokens: 1_200 }],
    [
      'another model called the tools whose results it gets',
      {
        messages: [
          { role: 'user', text: 'Hello?' },
          { role: 'assistant', text: '', toolCalls: [{ id: 'a', name: 'one', input: '{}' }] },
          { role: 'tool', callId: 'a', name: 'one', text: 'Done.', isError: false },
        ],
      },
    ],
  ] as [string, Partial<ModelCall>][])('is left out of messages where %s', async (_, changes) => {
    const body = await bodySent('anthropic/some-model', { effort: 'high', ...changes });
    expect(body).not.toHaveProperty('thinking');
    expect(body).toMatchObject({ max_tokens: changes.maxOutputTokens ?? 4_000 });
  });
});

test('a call that has to answer forbids its tools, and keeps them, in each protocol that can', () => {
  const call: ModelCall = {
    ...{ model: 'a/model', settings: undefined, system: '', maxOutputTokens: 100, onText() {} },
    messages: [{ role: 'user', text: 'Hello?' }],
    signal: new AbortController().signal,
    tools: [{ name: 'one', description: '', parameters: { type: 'object' } }],
    mustAnswer: true,
  };
  const forbidden = { functionCallingConfig: { mode: 'NONE' } };
  for (const [protocol, wanted] of [
    [chat, { tool_choice: 'none' }],
    [responses, { tool_choice: 'none' }],
    [messages, { tool_choice: { type: 'none' } }],
    [gemini, { toolConfig: forbidden }],
  ] as const) {
    const bodyOf = (changes: Partial<ModelCall>) =>
      JSON.parse(JSON.stringify(protocol.bodyOf({ ...call, ...changes }, 'model')));
    expect(bodyOf({})).toMatchObject({ ...wanted, tools: [expect.anything()] });
    const [field] = Object.keys(wanted) as [string];
    expect(bodyOf({ mustAnswer: false })).not.toHaveProperty(field);
    expect(bodyOf({ tools: [] })).not.toHaveProperty(field);
  }
  // Bedrock cannot forbid tools, so none are offered.
  const sent = JSON.parse(JSON.stringify(converse.bodyOf(call, 'model')));
  expect(sent).not.toHaveProperty('toolConfig');
});

describe.each(['openai/some-model', 'anthropic/some-model'])('the times of %s', (model) => {
  const never = new Promise<void>(() => {});

  test('a first byte that comes too late ends the call', async () => {
    provider.script(answering('Hello.', { until: never }));

    const failure = await failureOf(ask(model, { firstByteTimeoutMs: 100 }));

    expect(failure).toMatchObject({
      fault: 'unavailable',
      wasSilent: true,
      message: expect.stringContaining('it sent nothing for 0.1 s'),
    });
  });

  test('an answer that has begun may take longer than its first byte', async () => {
    const begun = Promise.withResolvers<void>();
    const later = Promise.withResolvers<void>();
    const hold = { after: 2, until: later.promise };
    provider.script(answering('Hello there.', { piece: 4, hold }));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const answer = ask(model, { firstByteTimeoutMs: 1_000, onText: () => begun.resolve() });
    await begun.promise;
    vi.advanceTimersByTime(5_000);
    vi.useRealTimers();
    later.resolve();

    expect((await answer).message.text).toBe('Hello there.');
  });

  test('an answer that takes too long ends, with the text that had arrived', async () => {
    provider.script(answering('Hello there.', { piece: 4, hold: { after: 2, until: never } }));

    const failure = await failureOf(ask(model, { timeoutMs: 400 }));

    expect(failure).toMatchObject({
      fault: 'unavailable',
      wasSilent: true,
      text: expect.stringMatching(/^Hell/),
      message: expect.stringContaining('longer than 0.4 s'),
    });
    expect(failure.usage.completion).toBeNull();
  });
});
