import { getEventListeners } from 'node:events';
import { createServer } from 'node:net';
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import {
  answering,
  callingTools,
  type Fault,
  type Reply,
  type ScriptedProvider,
  startScriptedProvider,
} from '../../../test/support/scripted-provider.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { answerBounds } from './answer.ts';
import type { DialogueMessage, ModelAnswer, ModelCall, ModelError, Models } from './model.ts';
import { ProviderModels } from './models.ts';
import type { ProviderSettings } from './providers.ts';

/** A provider of each kind. */
const kinds = [
  'openai',
  'anthropic',
  'ollama',
  'responses',
  'gemini',
  'bedrock',
  'mistral',
] as const;
const key = 'sk-very-secret-key';
const noon = Date.parse('2026-01-01T12:00:00Z');

let provider: ScriptedProvider;

beforeAll(async () => {
  provider = await startScriptedProvider();
});
afterAll(() => provider.close());
beforeEach(() => {
  provider.script(answering('Hello.'));
});

const silence = { firstTokenMs: 10_000, betweenMs: 10_000, keepAliveMs: 60_000 };
const clock = { now: () => noon, monotonic: () => 0 };

function modelsFor(
  settings: Partial<ProviderSettings> = {},
  silent = silence,
): Pick<Models, 'call'> {
  const models = new ProviderModels({ clock, silence: silent });
  return {
    call: (call) => models.call({ ...call, settings: { ...settingsOf(call.model), ...settings } }),
  };
}

function settingsOf(model: string): ProviderSettings {
  if (model.startsWith('gemini/')) return { apiKey: key, baseUrl: `${provider.url}/v1beta` };
  if (model.startsWith('bedrock/')) return { apiKey: key, baseUrl: provider.url };
  if (model.startsWith('mistral/')) {
    return { apiKey: key, baseUrl: `${provider.url}/mistral/v1`, protocol: 'mistral' };
  }
  const isAnthropic = model.startsWith('anthropic/');
  const baseUrl = isAnthropic ? provider.anthropicBaseUrl : provider.openaiBaseUrl;
  return { apiKey: key, baseUrl, protocol: model.startsWith('responses/') ? 'responses' : null };
}

function callOf(kind: string, changes: Partial<ModelCall> = {}): ModelCall {
  return {
    model: `${kind}/some-model`,
    settings: undefined,
    system: 'Be brief.',
    messages: [{ role: 'user', text: 'Hello?' }],
    tools: [],
    maxOutputTokens: 100,
    signal: new AbortController().signal,
    onText() {},
    ...changes,
  };
}

const ask = (kind: string, changes?: Partial<ModelCall>): Promise<ModelAnswer> =>
  modelsFor().call(callOf(kind, changes));

async function failureOf(call: Promise<ModelAnswer>): Promise<ModelError> {
  const outcome = await call.then(
    () => 'an answer',
    (error: unknown) => error,
  );
  expect(outcome).toMatchObject({ name: 'ModelError' });
  return outcome as ModelError;
}

const lastRequest = () => provider.requests.at(-1)!;
const weather = {
  name: 'weather',
  description: 'Tells the weather.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
};

describe.each(kinds)('%s', (kind) => {
  test('an answer streams as text, and reports its usage', async () => {
    provider.script(answering('The sky is blue today.', { piece: 5 }));
    const deltas: string[] = [];
    const { signal } = new AbortController();

    const answer = await ask(kind, { signal, onText: (delta) => deltas.push(delta) });

    expect(answer).toEqual({
      message: { role: 'assistant', text: 'The sky is blue today.', toolCalls: [] },
      finish: 'stop',
      usage: lastRequest().cost,
    });
    expect(deltas).toEqual(['The s', 'ky is', ' blue', ' toda', 'y.']);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('the request carries the call', async () => {
    await ask(kind, { tools: [weather], temperature: 0.3 });

    const { body, headers, system, model, tools } = lastRequest();
    expect({ system, model, tools }).toEqual({
      system: 'Be brief.',
      model: 'some-model',
      tools: ['weather'],
    });
    const max = kind === 'responses' ? 'max_output_tokens' : 'max_tokens';
    if (kind === 'gemini') {
      expect(body.generationConfig).toEqual({ temperature: 0.3, maxOutputTokens: 100 });
    } else if (kind === 'bedrock') {
      expect(body.inferenceConfig).toEqual({ temperature: 0.3, maxTokens: 100 });
    } else expect(body).toMatchObject({ stream: true, temperature: 0.3, [max]: 100 });
    // Arguments that stream before they are validated would more often be invalid JSON.
    expect(JSON.stringify(body)).not.toContain('eager');
    expect(
      `${headers['authorization'] ?? headers['x-api-key'] ?? headers['x-goog-api-key']}`,
    ).toContain(key);
  });

  test('a model keeps the slashes of its name', async () => {
    await ask(kind, { model: `${kind}/org/model:7b` });

    expect(lastRequest().model).toBe('org/model:7b');
  });

  test('the arguments of tools are passed on as the model wrote them, also invalid JSON', async () => {
    const inputs =
      kind === 'gemini'
        ? // It sends arguments as an object.
          ['{"city":"Köln"}', '{}']
        : ['{"city": "Köln",  "n": 12345678901234567890}', '{"city": ', 'no JSON', '[1]'];
    const toolCalls = inputs.map((input, n) => ({ id: `c${n}`, name: 'weather', input }));
    provider.script(() => ({ text: 'Let me see.', toolCalls, piece: 3 }));

    const { message, finish } = await ask(kind, { tools: [weather] });

    expect(message).toMatchObject({ role: 'assistant', text: 'Let me see.', toolCalls });
    expect(finish).toBe('tool-calls');
  });

  test('a dialogue with tools is sent in a form that the provider accepts', async () => {
    provider.script(callingTools([{ name: 'weather', input: '{"city": ' }], 'It rains.'));
    const first = await ask(kind, { tools: [weather] });
    const calls = [
      ...first.message.toolCalls,
      { id: 'other.provider:1', name: 'no such/tool!', input: '{"a":1}' },
      { id: 'third', name: 'weather', input: '[1]' },
    ];
    const messages: DialogueMessage[] = [
      { role: 'user', text: 'Hello?' },
      { role: 'assistant', text: '', toolCalls: [] },
      { ...first.message, toolCalls: calls },
      ...calls.map(({ id, name }, n) => ({
        role: 'tool' as const,
        callId: id,
        name,
        text: `result ${n}`,
        isError: n === 1,
      })),
    ];

    const second = await ask(kind, { messages, tools: [weather] });

    expect(second.message.text).toBe('It rains.');
    expect(lastRequest().toolResults).toEqual(['result 0', 'result 1', 'result 2']);
  });

  test('a request for JSON carries its schema', async () => {
    provider.script(answering('{"ok":true}'));
    const schema = {
      type: 'object',
      properties: { ok: { type: 'boolean' }, why: { type: 'string' } },
      required: ['ok'],
      additionalProperties: false,
    };

    const { message } = await ask(kind, { schema });

    expect(message.text).toBe('{"ok":true}');
    const { body } = lastRequest();
    if (kind === 'anthropic') {
      expect(body.output_config).toEqual({ format: { type: 'json_schema', schema } });
    } else if (kind === 'gemini') {
      expect(body.generationConfig).toMatchObject({ responseJsonSchema: schema });
    } else if (kind === 'bedrock') {
      // The system text has it alone.
      expect(JSON.stringify(body)).not.toContain('additionalProperties');
    } else if (kind === 'responses') {
      const format = { type: 'json_schema', name: 'answer', schema, strict: false };
      expect(body.text).toEqual({ format });
    } else {
      expect(body.response_format).toEqual({
        type: 'json_schema',
        json_schema: { name: 'answer', schema, strict: false },
      });
    }
  });

  test('a count that the provider does not report is null, never 0', async () => {
    provider.script(answering('Hi.', { usage: null }));

    const { usage, message } = await ask(kind);

    expect(usage).toEqual({ prompt: null, completion: null });
    expect(message.text).toBe('Hi.');
  });

  test.each([
    ['length', 'length'],
    ['content-filter', 'content-filter'],
    ['stop', 'stop'],
  ] as const)('an answer that ends for %s says so', async (finish, expected) => {
    provider.script(answering('Hi.', { finish }));

    expect((await ask(kind)).finish).toBe(expected);
  });

  test.each<[Fault, string]>([
    ['cut', 'failed'],
    ['short', 'makes no sense'],
    ['malformed', 'makes no sense'],
    ['error-event', 'scripted failure'],
  ])('a stream with the fault %o is unavailable, with the text so far', async (fault, words) => {
    provider.script(answering('The sky is blue.', { fault, faultAfter: 3, piece: 4 }));

    const failure = await failureOf(ask(kind));

    expect(failure).toMatchObject({ fault: 'unavailable', retryAfterMs: null });
    expect(failure.message).toContain(words);
    expect(failure.text).toBe(kind === 'anthropic' ? 'The sky ' : 'The sky is b');
    // Messages report the prompt first; the rest of the usage is unknown.
    const prompt = kind === 'anthropic' ? lastRequest().cost!.prompt : null;
    expect(failure.usage).toEqual({ prompt, completion: null });
  });

  test.each<[Fault, Partial<ModelError>, string]>([
    [{ status: 401 }, { fault: 'credentials' }, 'does not accept the credentials'],
    [{ status: 403 }, { fault: 'credentials' }, 'does not accept the credentials (403)'],
    [{ status: 404 }, { fault: 'refused' }, '"some-model"'],
    [{ status: 400 }, { fault: 'refused' }, 'scripted 400'],
    [{ status: 413, body: 'too\nlong' }, { fault: 'refused' }, 'too long'],
    [{ status: 422, body: { detail: 'no' } }, { fault: 'refused' }, 'no'],
    [{ status: 302, headers: { location: '/' } }, { fault: 'refused' }, 'redirects'],
    [
      { status: 400, body: [{ error: { code: 400, message: 'API key not valid' } }] },
      { fault: 'credentials', refuses: 'model' },
      'does not accept the credentials (400)',
    ],
    [
      { status: 400, body: { error: 'Incorrect API key provided: xa***y.' } },
      { fault: 'credentials', refuses: 'model' },
      'does not accept the credentials (400)',
    ],
    [
      { status: 400, body: { error: { code: 'content_filter', message: 'It was filtered.' } } },
      { fault: 'refused', isDeclined: true },
      'It was filtered.',
    ],
    [
      { status: 400, body: { error: { code: 'invalid_prompt', message: 'It was flagged.' } } },
      { fault: 'refused', isDeclined: true },
      'It was flagged.',
    ],
    [
      { status: 403, body: { error: { message: 'Your input was flagged for "x".' } } },
      { fault: 'refused', isDeclined: true, refuses: null },
      'Your input was flagged',
    ],
    ...[
      'Your request exceeded model token limit: 131072 (requested: 140000)',
      'Prompt exceeds max length',
      'tokens in request more than max tokens allowed',
      'Range of input length should be [1, 129024]',
      'Input Tokens Exceeded: Number of input tokens exceeds maximum length',
      'The decoder prompt (length 5000) is longer than the maximum model length of 4096.',
    ].map((message): [Fault, Partial<ModelError>, string] => [
      { status: 400, body: { error: { message } } },
      { fault: 'refused', refuses: 'length' },
      message,
    ]),
    [
      {
        status: 400,
        body: {
          error: {
            message: 'Provider returned error',
            metadata: { raw: '{"error":{"message":"prompt is too long: 9 > 8"}}' },
          },
        },
      },
      { fault: 'refused', refuses: 'length' },
      'Provider returned error: {"error":{"message":"prompt is too long: 9 > 8"}}',
    ],
    [
      { status: 429, body: { error: { message: 'Limit 9. Please try again in 2.5s. Visit us.' } } },
      { fault: 'unavailable', retryAfterMs: 2_500 },
      'Limit 9',
    ],
    [{ status: 424, body: { message: 'The model failed.' } }, { fault: 'unavailable' }, '424'],
    [
      { status: 429, body: { error: { message: 'Request too large for m on tokens per min' } } },
      { fault: 'refused', refuses: 'length', isRateLimited: false },
      'Request too large',
    ],
    [
      { status: 429, body: { error: { code: 'insufficient_quota', message: 'No money.' } } },
      { fault: 'refused', refuses: 'model', isRateLimited: false },
      'No money.',
    ],
    [
      { status: 429, body: { message: 'Too many tokens, please wait before trying again.' } },
      { fault: 'unavailable', isRateLimited: true },
      'Too many tokens',
    ],
    [{ status: 409 }, { fault: 'unavailable', retryAfterMs: null }, '409'],
    [{ status: 500 }, { fault: 'unavailable', retryAfterMs: null }, 'scripted 500'],
    [{ status: 529, body: '' }, { fault: 'unavailable', retryAfterMs: null }, '529'],
    [
      { status: 429, headers: { 'retry-after': '7' } },
      { fault: 'unavailable', retryAfterMs: 7_000 },
      '429',
    ],
    [
      { status: 503, headers: { 'retry-after': 'Thu, 01 Jan 2026 12:01:30 GMT' } },
      { fault: 'unavailable', retryAfterMs: 90_000 },
      '503',
    ],
    [
      { status: 429, headers: { 'retry-after-ms': '1500', 'retry-after': '7' } },
      { fault: 'unavailable', retryAfterMs: 1_500 },
      '429',
    ],
    [
      { status: 429, headers: { 'retry-after': 'soon' } },
      { fault: 'unavailable', retryAfterMs: null },
      '429',
    ],
  ])(
    'the error response %o has its own fault, and is requested once',
    async (fault, expected, words) => {
      provider.script(() => ({ fault }));
      const before = provider.requests.length;

      const failure = await failureOf(ask(kind));

      expect(failure).toMatchObject({ ...expected, usage: { prompt: 0, completion: 0 } });
      expect(failure.message).toContain(words);
      expect(provider.requests.length).toBe(before + 1);
    },
  );

  test.each([408, 504])('the usage of a call that ended in %i is unknown', async (status) => {
    provider.script(() => ({ fault: { status } }));

    const failure = await failureOf(ask(kind));

    expect(failure).toMatchObject({
      fault: 'unavailable',
      usage: { prompt: null, completion: null },
    });
  });

  test('a call that its server cannot read may be right the next time, and its usage is unknown', async () => {
    const error = { type: 'invalid_request_error', code: 'tool_use_failed', message: 'No call.' };
    provider.script(() => ({ fault: { status: 400, body: { error } } }));

    const failure = await failureOf(ask(kind));

    expect(failure).toMatchObject({
      fault: 'unavailable',
      isDown: false,
      usage: { prompt: null, completion: null },
    });
    expect(failure.message).toContain('400: No call.');
  });

  test('nothing that is said of credentials with a 401 is shown, and with a 403 no part of the key', async () => {
    const said = async (status: number) => {
      const body = { error: { message: 'Enable the API for sk-v***-key (…-key) first' } };
      provider.script(() => ({ fault: { status, body } }));
      return (await failureOf(ask(kind))).message;
    };

    expect(await said(401)).not.toMatch(/sk-|Enable/);
    expect(await said(403)).toMatch(/: Enable the API for … … first$/);
  });

  test('an error shows no form of the key', async () => {
    const apiKey = 'sk/very+secret/key?';
    const bytes = Buffer.from(apiKey);
    const forms = [
      apiKey,
      encodeURIComponent(apiKey),
      bytes.toString('base64'),
      bytes.toString('base64').replace(/=+$/, ''),
      bytes.toString('base64url'),
    ];
    const body = { error: { message: `bad: ${forms.join(' ')}` } };
    provider.script(() => ({ fault: { status: 400, body } }));

    const { message } = await failureOf(modelsFor({ apiKey }).call(callOf(kind)));

    expect(message).toContain('bad: … … … … …');
  });

  test('an error never shows the key, and cuts a long message', async () => {
    const body = { error: { message: `bad key ${key} ${'x'.repeat(2_000)}` } };
    provider.script(() => ({ fault: { status: 400, body } }));

    const { message } = await failureOf(ask(kind));

    expect(message).not.toContain(key);
    expect(message.length).toBeLessThan(700);
  });

  test.each<[string, Reply]>([
    ['before the first byte', { until: new Promise(() => {}) }],
    ['before the first word', { hold: { after: 0, until: new Promise(() => {}) } }],
    ['in the middle', { hold: { after: 3, until: new Promise(() => {}) } }],
  ])('the signal ends a call %s at once, with the text so far', async (_when, reply) => {
    provider.script(answering('The sky is blue.', { piece: 4, ...reply }));
    const controller = new AbortController();
    const index = provider.requests.length;
    let heard = '';
    const call = failureOf(
      ask(kind, {
        signal: controller.signal,
        onText: (delta) => {
          heard += delta;
        },
      }),
    );
    await provider.received(index + 1);
    const expected =
      reply.hold?.after === 3 ? (kind === 'anthropic' ? 'The sky ' : 'The sky is b') : '';
    await waitFor(() => heard === expected, { describe: 'the text so far' });

    controller.abort();
    const failure = await call;

    expect(failure).toMatchObject({ fault: 'aborted', text: expected });
    expect(failure.usage.completion).toBeNull();
    expect((await provider.ended(index)).endedBy).toBe('aborted');
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });

  test('a call with an aborted signal costs nothing and sends no request', async () => {
    const before = provider.requests.length;

    const failure = await failureOf(ask(kind, { signal: AbortSignal.abort() }));

    expect(failure).toMatchObject({ fault: 'aborted', usage: { prompt: 0, completion: 0 } });
    expect(provider.requests.length).toBe(before);
  });

  test.each<[string, Reply]>([
    ['before the first byte', { until: new Promise(() => {}) }],
    ['in the middle', { hold: { after: 3, until: new Promise(() => {}) } }],
  ])('a connection that falls silent %s is closed', async (_when, reply) => {
    provider.script(answering('The sky is blue.', { piece: 4, ...reply }));
    const index = provider.requests.length;

    const failure = await failureOf(
      modelsFor({}, { firstTokenMs: 50, betweenMs: 50, keepAliveMs: 60_000 }).call(callOf(kind)),
    );

    expect(failure).toMatchObject({ fault: 'unavailable' });
    expect(failure.message).toContain('silent');
    expect(failure.usage.completion).toBeNull();
    expect((await provider.ended(index)).endedBy).toBe('aborted');
  });

  test('a slow stream is not silence', async () => {
    provider.script(answering('abcdefghij', { piece: 1, everyMs: 60 }));

    const { message } = await modelsFor(
      {},
      { firstTokenMs: 500, betweenMs: 500, keepAliveMs: 60_000 },
    ).call(callOf(kind));

    expect(message.text).toBe('abcdefghij');
  });

  test('a call of an unreachable provider costs nothing', async () => {
    const call = modelsFor({ baseUrl: `http://127.0.0.1:${await closedPort()}/v1` });

    const failure = await failureOf(call.call(callOf(kind)));

    expect(failure).toMatchObject({
      fault: 'unavailable',
      usage: { prompt: 0, completion: 0 },
    });
    expect(failure.message).toContain('ECONNREFUSED');
    expect(failure.wasLost).toBe(true);
  });

  test('a text that is too long is cut, because it was paid for', async () => {
    const text = 'say "x"\n'.repeat(200_000);
    provider.script(answering(text, { piece: 100_000, usage: { prompt: 9, completion: 400_000 } }));

    const { message, finish, usage } = await ask(kind);

    expect(finish).toBe('too-long');
    expect(text.startsWith(message.text)).toBe(true);
    const bytes = Buffer.byteLength(JSON.stringify(message.text));
    expect(bytes).toBeLessThanOrEqual(answerBounds.text + 2);
    expect(bytes).toBeGreaterThan(answerBounds.text - 4_000);
    expect(usage).toEqual({ prompt: 9, completion: 400_000 });
  });

  test('text without end is refused, and the error has the text before the bound', async () => {
    const text = 'x'.repeat(answerBounds.written + 1);
    provider.script(answering(text, { piece: 1_000_000 }));
    const index = provider.requests.length;

    const failure = await failureOf(ask(kind));

    expect(failure.fault).toBe('refused');
    expect(failure.text.length).toBeGreaterThan(900_000);
    await provider.ended(index);
  });

  test('a provider may be silent for longer before its answer begins than within it', async () => {
    const begun = Promise.withResolvers<void>();
    provider.script(answering('The sky is blue.', { until: begun.promise }));
    const patient = modelsFor({}, { firstTokenMs: 10_000, betweenMs: 100, keepAliveMs: 60_000 });
    const asked = provider.requests.length;

    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const answer = patient.call(callOf(kind));
    await provider.received(asked + 1);
    vi.advanceTimersByTime(9_000);
    vi.useRealTimers();
    begun.resolve();
    expect((await answer).message.text).toBe('The sky is blue.');

    const hold = { after: 3, until: new Promise(() => {}) };
    provider.script(answering('The sky is blue.', { piece: 4, hold }));
    const failure = await failureOf(patient.call(callOf(kind)));

    expect(failure).toMatchObject({
      wasSilent: true,
      message: expect.stringContaining('it sent nothing for 0.1 s'),
    });
  });

  test('arguments that are too long are cut, and so are invalid JSON', async () => {
    const input = JSON.stringify({ city: 'x'.repeat(answerBounds.toolInput) });
    provider.script(() => ({ toolCalls: [{ name: 'weather', input }], piece: 100_000 }));

    const { message } = await ask(kind, { tools: [weather] });

    expect(message.toolCalls[0]?.input).toBe(input.slice(0, answerBounds.toolInput));
  });

  test('arguments of many calls that are too long together are refused', async () => {
    const input = JSON.stringify({ city: 'x'.repeat(answerBounds.toolInput - 100) });
    const calls = Math.floor(answerBounds.toolInputs / input.length) + 1;
    const toolCalls = Array.from({ length: calls }, () => ({ name: 'weather', input }));
    provider.script(() => ({ toolCalls, piece: 1_000_000 }));

    const failure = await failureOf(ask(kind, { tools: [weather] }));

    expect(failure).toMatchObject({ fault: 'refused' });
    expect(failure.message).toContain(`${answerBounds.toolInputs} characters of arguments`);
  });

  test('too many tool calls are refused', async () => {
    const toolCalls = Array.from({ length: answerBounds.toolCalls + 1 }, () => ({
      name: 'weather',
      input: '{}',
    }));
    provider.script(() => ({ toolCalls }));

    expect(await failureOf(ask(kind, { tools: [weather] }))).toMatchObject({ fault: 'refused' });
  });

  test('two calls of one answer never have the same id', async () => {
    const toolCalls = [1, 2, 3].map((n) => ({ id: 'same', name: 'weather', input: { n } }));
    provider.script(() => ({ toolCalls }));

    const { message } = await ask(kind, { tools: [weather] });

    expect(new Set(message.toolCalls.map(({ id }) => id)).size).toBe(message.toolCalls.length);
  });
});

test('signed reasoning is sent back in its place, to the same model only', async () => {
  const thinking = { text: 'Rain or sun?', signature: 'c2lnbmVk' };
  provider.script(() => ({
    thinking,
    text: 'Let me see.',
    toolCalls: [{ id: 'c1', name: 'weather', input: '{}' }],
  }));
  const question: DialogueMessage = { role: 'user', text: 'Hello?' };
  const { message } = await ask('anthropic', { tools: [weather] });
  // As the store of dialogues returns it.
  const kept: DialogueMessage = JSON.parse(JSON.stringify(message));
  const result = { role: 'tool', callId: 'c1', name: 'weather', text: '', isError: false } as const;
  const messages: DialogueMessage[] = [question, kept, result];

  await ask('anthropic', { messages });
  const [, same] = lastRequest().messages;
  await ask('anthropic', { messages, model: 'anthropic/another' });
  const [, another] = lastRequest().messages;

  expect(message.text).toBe('Let me see.');
  expect(same.content).toEqual([
    { type: 'thinking', thinking: 'Rain or sun?', signature: 'c2lnbmVk' },
    { type: 'text', text: 'Let me see.' },
    { type: 'tool_use', id: 'c1', name: 'weather', input: {} },
  ]);
  expect(another.content).toEqual(same.content.slice(1));
});

test.each([
  ['anthropic', 'messages.1.content.0: Invalid `signature` in `thinking` block'],
  ['responses', 'The encrypted content gAAA… could not be verified.'],
  ['gemini', 'Corrupted thought signature.'],
])(
  'reasoning that %s cannot verify is left out, and the model asked once more',
  async (kind, message) => {
    const thinking = { text: 'Rain or sun?', signature: 'c2lnbmVk' };
    provider.script(() => ({ thinking, toolCalls: [{ id: 'c1', name: 'weather', input: '{}' }] }));
    const answer = await ask(kind, { tools: [weather] });
    const result = {
      role: 'tool',
      callId: 'c2',
      name: 'weather',
      text: '',
      isError: false,
    } as const;
    // Under another id: the scripted provider knows the reasoning of its own calls.
    const kept = JSON.parse(JSON.stringify(answer.message).replaceAll('c1', 'c2'));
    const messages = [{ role: 'user', text: 'Hello?' } as const, kept, result];
    const before = provider.requests.length;
    provider.script(({ body }) =>
      JSON.stringify(body).includes('c2lnbmVk')
        ? { fault: { status: 400, body: { error: { message } } } }
        : { text: 'It rains.' },
    );

    const { message: said } = await ask(kind, { messages, tools: [weather] });

    expect(said.text).toBe('It rains.');
    expect(provider.requests.length).toBe(before + 2);
    provider.script(() => ({ fault: { status: 400, body: { error: { message } } } }));
    expect(await failureOf(ask(kind, { messages }))).toMatchObject({ refuses: 'reasoning' });
    expect(provider.requests.length).toBe(before + 4);
  },
);

test.each([
  ['deepseek', [{ type: 'thinking', thinking: 'Rain or sun?' }], 'enabled'],
  ['anthropic', [], undefined],
])('thoughts without a signature go back to %s as %j', async (provided, thoughts, thinks) => {
  const call = { id: 'c1', name: 'weather', input: '{}' };
  provider.script(() => ({
    fault: {
      status: 200,
      body: {
        content: [
          { type: 'thinking', thinking: 'Rain or sun?' },
          { type: 'tool_use', id: 'c1', name: 'weather', input: {} },
        ],
        stop_reason: 'tool_use',
      },
    },
  }));
  const models = modelsFor({ protocol: 'messages' });
  const changes = { tools: [weather], maxOutputTokens: 4_000 };
  const { message } = await models.call(callOf(provided, changes));
  provider.script(answering('It rains.'));
  const result = { role: 'tool', callId: 'c1', name: 'weather', text: '', isError: false } as const;
  const messages = [{ role: 'user', text: 'Hello?' } as const, message, result];

  await models.call(
    callOf(provided, { ...changes, messages, effort: 'medium', thinking: 'budget' }),
  );

  expect(message.toolCalls).toEqual([call]);
  expect(lastRequest().messages[1].content).toEqual([
    ...thoughts,
    { type: 'tool_use', id: 'c1', name: 'weather', input: {} },
  ]);
  expect(lastRequest().body.thinking?.type).toBe(thinks);
});

describe.each(['openai', 'ollama'])('the reasoning of a chat (%s)', (kind) => {
  const weatherCall = { id: 'c1', name: 'weather', input: '{}' };
  const thinking = { text: 'Rain or sun?', signature: '' };
  const question: DialogueMessage = { role: 'user', text: 'Hello?' };
  const result = {
    role: 'tool',
    callId: 'c1',
    name: 'weather',
    text: 'Sun',
    isError: false,
  } as const;
  const toldOf = (fields: object) => expect.objectContaining(fields);

  test.each([false, true])(
    'goes back with the calls of tools that it led to (in one document: %s)',
    async (ignoresStream) => {
      provider.script(() => ({ thinking, toolCalls: [weatherCall], ignoresStream }));
      const { message } = await ask(kind, { tools: [weather] });
      const kept: DialogueMessage = JSON.parse(JSON.stringify(message));
      const messages: DialogueMessage[] = [question, kept, result];
      provider.script(answering('It shines.'));

      const { message: answer } = await ask(kind, { messages });

      expect(answer.text).toBe('It shines.');
      expect(message.text).toBe('');
      expect(lastRequest().messages.at(-2)).toMatchObject({ reasoning_content: 'Rain or sun?' });
      // The scripted provider rejects the same requests as DeepSeek.
      const { reasoning: _, ...forgetful } = message;
      const refused = ask(kind, { messages: [question, forgetful, result] });
      await expect(refused).rejects.toMatchObject({ fault: 'refused' });
    },
  );

  test('stays with its exchange in later ones, and is left out of those without tools', async () => {
    const own = (text: string) =>
      ({ model: `${kind}/some-model`, field: 'reasoning', text }) as const;
    const said = (text: string, more: object = {}): DialogueMessage => ({
      role: 'assistant',
      text,
      toolCalls: [],
      ...more,
    });
    const messages: DialogueMessage[] = [
      question,
      said('Hi.', { reasoning: own('A greeting.') }),
      question,
      said('', { toolCalls: [{ ...weatherCall, id: 'c2' }], reasoning: own('Look.') }),
      { ...result, callId: 'c2' },
      said('Sun.'),
      question,
    ];

    await ask(kind, { messages, tools: [weather] });
    const sent = lastRequest().messages.filter(({ role }) => role === 'assistant');
    await ask(kind, { messages, model: `${kind}/another` });
    const another = lastRequest().messages.filter(({ role }) => role === 'assistant');

    expect(sent[0]).not.toHaveProperty('reasoning');
    expect(sent.slice(1)).toEqual([toldOf({ reasoning: 'Look.' }), toldOf({ reasoning: '' })]);
    for (const message of another) expect(message).not.toHaveProperty('reasoning');
  });
});

test.each([false, true])(
  'reasoning without end is refused (in one document: %s)',
  async (ignoresStream) => {
    const thinking = { text: 'x'.repeat(answerBounds.reasoning + 1), signature: 'c2lnbmVk' };
    provider.script(answering('Hi.', { thinking, piece: 100_000, ignoresStream }));

    const failure = await failureOf(ask('anthropic'));

    expect(failure).toMatchObject({ fault: 'refused', text: '' });
    expect(failure.message).toContain('characters of reasoning');
  },
);

test('messages: a failed result is marked as an error, and the results of a turn are one message', async () => {
  const call = (id: string) => ({ id, name: 'weather', input: '{}' });
  const result = (callId: string, isError: boolean) =>
    ({ role: 'tool', callId, name: 'weather', text: 'It failed.', isError }) as const;
  const messages: DialogueMessage[] = [
    { role: 'user', text: 'Hello?' },
    { role: 'assistant', text: '', toolCalls: [call('a'), call('b')] },
    result('a', true),
    result('b', false),
  ];

  await ask('anthropic', { messages });

  expect(lastRequest().messages).toHaveLength(3);
  expect(lastRequest().messages[2].content).toMatchObject([
    { type: 'tool_result', tool_use_id: 'a', is_error: true },
    { type: 'tool_result', tool_use_id: 'b' },
  ]);
});

test.each<[string, Record<string, unknown>]>([
  ['an array', { type: 'array', items: { type: 'string' } }],
  ['a choice', { anyOf: [{ type: 'object' }, { type: 'null' }] }],
  ['a choice of objects', { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] }],
  ['a reference', { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } }],
  ['values', { enum: ['a', 'b'] }],
  ['several types', { type: ['object', 'null'] }],
  ['anything', {}],
])('a schema of %s is not sent, because providers refuse it', async (_what, schema) => {
  for (const kind of kinds) {
    await ask(kind, { schema });

    expect(lastRequest().body).not.toHaveProperty('response_format');
    expect(lastRequest().body).not.toHaveProperty('output_config');
    expect(lastRequest().body).not.toHaveProperty('text');
    expect(lastRequest().tools).toEqual([]);
  }
});

test('a schema that fits strict mode is sent in strict mode', async () => {
  const schema = {
    type: 'object',
    properties: { ok: { type: 'boolean' } },
    required: ['ok'],
    additionalProperties: false,
  };

  await ask('openai', { schema });

  expect(lastRequest().body.response_format.json_schema.strict).toBe(true);
});

test('Anthropic is reached with and without the version in its base url', async () => {
  for (const baseUrl of [provider.url, `${provider.url}/`, `${provider.url}/v1`]) {
    const { message } = await modelsFor({ baseUrl }).call(callOf('anthropic'));
    expect(message.text).toBe('Hello.');
  }
});

test('a provider with a base url needs no key, and gets none', async () => {
  await modelsFor({ apiKey: null, baseUrl: provider.openaiBaseUrl }).call(callOf('ollama'));

  expect(lastRequest().headers).not.toHaveProperty('authorization');
});

describe('credentials', () => {
  const nothingSpent = { prompt: 0, completion: 0 };
  const failWith = (settings: ProviderSettings | undefined, model: string) =>
    failureOf(new ProviderModels({ clock, silence }).call(callOf('openai', { model, settings })));

  test.each<[string, ProviderSettings | undefined, string]>([
    ['openai/gpt', undefined, 'set OPENAI_API_KEY, or store credentials for the organization'],
    ['anthropic/claude', undefined, 'set ANTHROPIC_API_KEY'],
    [
      'anthropic/claude',
      { apiKey: null, baseUrl: 'http://127.0.0.1:1/v1' },
      'set ANTHROPIC_API_KEY (any value where the server asks for none)',
    ],
    [
      'my-gateway/x',
      { apiKey: 'k', baseUrl: null, source: 'organization' },
      'The credentials stored for the organization do not say where the provider my-gateway is',
    ],
    ['my-gateway/x', undefined, 'set MY_GATEWAY_BASE_URL'],
    ['my-gateway/x', { apiKey: 'k', baseUrl: null }, 'set MY_GATEWAY_BASE_URL'],
    ['toString/x', undefined, 'is not written as provider/model'],
    ['constructor/x', undefined, 'set CONSTRUCTOR_BASE_URL'],
    ['gpt', undefined, 'is not written as provider/model'],
    ['openai/', undefined, 'is not written as provider/model'],
    ['openai/gpt', { apiKey: 'two\nlines', baseUrl: null }, 'no key of visible ASCII characters'],
  ])('%s with the settings %o fails and says what to do', async (model, settings, words) => {
    const failure = await failWith(settings, model);

    expect(failure).toMatchObject({ fault: 'credentials', usage: nothingSpent });
    expect(failure.message).toContain(words);
    expect(failure.message).not.toContain('two');
  });

  test.each([401, 403])(
    'that an organization stored and a %i refuses are its own',
    async (status) => {
      provider.script(() => ({ fault: { status } }));

      const { message } = await failureOf(
        modelsFor({ source: 'organization' }).call(callOf('openai')),
      );

      expect(message).toBe(
        `The provider openai does not accept the credentials (${status}); replace the credentials stored for the organization${status === 403 ? ': scripted 403' : ''}`,
      );
    },
  );
});

test('concurrent calls each get their own answer', async () => {
  provider.script(({ messages }) => ({
    text: `${messages.at(-1).content}!`,
    everyMs: 1,
    piece: 2,
  }));

  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) =>
      ask('openai', { messages: [{ role: 'user', text: `question ${n}` }] }),
    ),
  );

  expect(answers.map(({ message }) => message.text)).toEqual(
    answers.map((_, n) => `question ${n}!`),
  );
});

async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}
