/** Answers of servers that do not stream, although a stream was asked for. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  answering,
  type Fault,
  type Reply,
  type ScriptedProvider,
  startScriptedProvider,
} from '../../../test/support/scripted-provider.ts';
import { systemClock } from '../../kernel/clock.ts';
import type { ModelAnswer, ModelCall, ModelError } from './model.ts';
import { ProviderModels } from './models.ts';

const chats = ['openai', 'ollama'];
const kinds = [...chats, 'anthropic', 'responses', 'gemini', 'bedrock'];
const unknown = { prompt: null, completion: null };
const nothing = { prompt: 0, completion: 0 };

let provider: ScriptedProvider;

beforeAll(async () => {
  provider = await startScriptedProvider();
});
afterAll(() => provider.close());

function ask(kind: string, changes: Partial<ModelCall> = {}, idleMs = 10_000) {
  const models = new ProviderModels({
    clock: systemClock,
    silence: { firstTokenMs: idleMs, betweenMs: idleMs, keepAliveMs: 60_000 },
  });
  return models.call({
    model: `${kind}/some-model`,
    settings: {
      apiKey: 'sk-secret',
      baseUrl: addressOf(kind),
      protocol: kind === 'responses' ? kind : null,
    },
    system: '',
    messages: [{ role: 'user', text: 'Hello?' }],
    tools: [{ name: 'weather', description: 'Tells it.', parameters: { type: 'object' } }],
    maxOutputTokens: 100,
    signal: new AbortController().signal,
    onText() {},
    ...changes,
  });
}

function addressOf(kind: string): string {
  if (kind === 'bedrock') return provider.url;
  return kind === 'gemini' ? `${provider.url}/v1beta` : provider.openaiBaseUrl;
}

async function failureOf(call: Promise<ModelAnswer>): Promise<ModelError> {
  const outcome = await call.then(
    () => 'an answer',
    (error: unknown) => error,
  );
  expect(outcome).toMatchObject({ name: 'ModelError' });
  return outcome as ModelError;
}

function replyWith(reply: Reply): void {
  provider.script(() => ({ ignoresStream: true, ...reply }));
}

const lastRequest = () => provider.requests.at(-1)!;

describe.each(kinds)('%s', (kind) => {
  test('an answer in one document is accepted although a stream was asked for', async () => {
    replyWith({ text: 'The sky is blue.' });
    const deltas: string[] = [];

    const answer = await ask(kind, { onText: (delta) => deltas.push(delta) });

    expect(lastRequest().body.stream).toBe(true);
    expect(answer).toEqual({
      message: { role: 'assistant', text: 'The sky is blue.', toolCalls: [] },
      finish: 'stop',
      usage: lastRequest().cost,
    });
    expect(deltas).toEqual(['The sky is blue.']);
  });

  test.each([
    { usage: null, expected: unknown },
    { usage: { prompt: 11, completion: 7 }, expected: { prompt: 11, completion: 7 } },
  ])('it may call tools, with the usage $usage', async ({ usage, expected }) => {
    const toolCalls = [
      { id: 'a', name: 'weather', input: '{"city":"Köln"}' },
      { id: 'b', name: 'weather', input: '{}' },
    ];
    replyWith({ text: 'Let me see.', toolCalls, usage });

    expect(await ask(kind)).toEqual({
      message: expect.objectContaining({ role: 'assistant', text: 'Let me see.', toolCalls }),
      finish: 'tool-calls',
      usage: expected,
    });
  });

  test('it may call tools without text', async () => {
    replyWith({ toolCalls: [{ id: 'a', name: 'weather', input: '{}' }] });

    const { message, finish } = await ask(kind);

    expect(message.text).toBe('');
    expect(message.toolCalls).toHaveLength(1);
    expect(finish).toBe('tool-calls');
  });

  test.each(['length', 'content-filter', 'stop'] as const)(
    'it says that it ends for %s',
    async (finish) => {
      replyWith({ text: 'Hi.', finish });

      expect((await ask(kind)).finish).toBe(finish);
    },
  );

  test.each<[Fault, string]>([
    ['cut', 'failed'],
    ['short', 'makes no sense'],
    ['malformed', 'makes no sense'],
    [{ status: 200, body: '{}' }, 'makes no sense'],
    [{ status: 200, body: '' }, 'it ended before its answer began'],
    [
      { status: 200, body: { detail: 'It loads.' } },
      'makes no sense: it is {"detail":"It loads."}',
    ],
    [{ status: 200, body: '{"choices": 1, "content": 1}' }, 'makes no sense'],
    [{ status: 200, body: '[{"choices": []}]' }, 'makes no sense'],
    [{ status: 200, body: '{"choices": [null], "content": [null]}' }, ''],
    [{ status: 200, body: '<html>Welcome</html>' }, 'makes no sense: it is <html>Welcome</html>'],
  ])(
    'a document with the fault %j is unavailable, and its usage is unknown',
    async (fault, words) => {
      replyWith({ text: 'The sky is blue.', fault });

      const failure = await failureOf(ask(kind));

      expect(failure).toMatchObject({ fault: 'unavailable', text: '', usage: unknown });
      expect(failure.message).toContain(words);
    },
  );

  test.each<[object, Partial<ModelError>, string]>([
    [{ message: 'no room', code: 503 }, { fault: 'unavailable', usage: nothing }, 'no room'],
    [{ message: 'slower', code: '429' }, { fault: 'unavailable', retryAfterMs: 7_000 }, 'slower'],
    [{ message: 'slower', type: 'rate_limit_error' }, { retryAfterMs: 7_000 }, 'slower'],
    [
      { message: 'busy', type: 'overloaded_error' },
      { fault: 'unavailable', usage: nothing },
      '529',
    ],
    [{ message: 'oops', type: 'api_error' }, { fault: 'unavailable', usage: nothing }, '500'],
    [{ message: 'oops', type: 'server_error' }, { fault: 'unavailable', usage: nothing }, '500'],
    [{ message: 'late', type: 'timeout_error' }, { fault: 'unavailable', usage: unknown }, '504'],
    [{ message: 'who knows', code: 7 }, { fault: 'unavailable', usage: nothing }, 'who knows'],
    [{ message: 'too long', type: 'invalid_request_error' }, { fault: 'refused' }, 'too long'],
    [{ message: 'too long', code: 400 }, { fault: 'refused', usage: nothing }, 'too long'],
    [{ message: 'what?', code: 'model_not_found' }, { fault: 'refused' }, '"some-model"'],
    [{ message: 'sk-secr…', code: 'invalid_api_key' }, { fault: 'credentials' }, 'credentials'],
  ])(
    'the error %j with status 200 is treated as the status that it names',
    async (error, expected, words) => {
      const body = { error };
      replyWith({ fault: { status: 200, headers: { 'retry-after': '7' }, body } });

      const failure = await failureOf(ask(kind));

      expect(failure).toMatchObject(expected);
      expect(failure.message).toContain(words);
      expect(failure.message).not.toContain('sk-');
    },
  );

  test.each<[string, Reply]>([
    ['before', { until: new Promise(() => {}) }],
    ['in the middle of', { hold: { after: 0, until: new Promise(() => {}) } }],
  ])('the signal and silence end a call %s the document', async (_when, reply) => {
    replyWith({ text: 'The sky is blue.', ...reply });
    const controller = new AbortController();
    const index = provider.requests.length;
    const aborted = failureOf(ask(kind, { signal: controller.signal }));
    await provider.received(index + 1);

    controller.abort();

    expect(await aborted).toMatchObject({ fault: 'aborted', text: '', usage: unknown });
    expect((await provider.ended(index)).endedBy).toBe('aborted');
    const silent = await failureOf(ask(kind, {}, 50));
    expect(silent).toMatchObject({ fault: 'unavailable', usage: unknown });
    expect(silent.message).toContain('silent');
    expect((await provider.ended(index + 1)).endedBy).toBe('aborted');
  });
});

test.each(chats)('%s: arguments in a document are passed on as they were written', async (kind) => {
  const inputs = ['{"city": ', 'no JSON', '[1]', '{"n":  12345678901234567890}'];
  const toolCalls = inputs.map((input, n) => ({ id: `c${n}`, name: 'weather', input }));
  replyWith({ toolCalls });

  expect((await ask(kind)).message.toolCalls).toEqual(toolCalls);
});

test('signed reasoning in a document is sent back unchanged', async () => {
  replyWith({
    thinking: { text: 'Rain or sun?', signature: 'c2lnbmVk' },
    text: 'Let me see.',
    toolCalls: [{ id: 'c1', name: 'weather', input: '{}' }],
  });
  const { message } = await ask('anthropic');
  provider.script(answering('It rains.'));

  await ask('anthropic', {
    messages: [
      { role: 'user', text: 'Hello?' },
      message,
      { role: 'tool', callId: 'c1', name: 'weather', text: 'rain', isError: false },
    ],
  });

  expect(lastRequest().messages[1].content).toEqual([
    { type: 'thinking', thinking: 'Rain or sun?', signature: 'c2lnbmVk' },
    { type: 'text', text: 'Let me see.' },
    { type: 'tool_use', id: 'c1', name: 'weather', input: {} },
  ]);
});
