/** What responses have that no other protocol has. Answers are sent byte for byte as they are written here. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../kernel/clock.ts';
import { KnownModels } from '../known-models.ts';
import type { DialogueMessage, ModelAnswer, ModelCall } from '../model.ts';
import { ProviderModels } from '../models.ts';
import type { Opaque } from '../prompt.ts';
import { chat } from './chat.ts';
import { responses } from './responses.ts';

const question: DialogueMessage = { role: 'user', text: 'Hello?' };
const silence = { firstTokenMs: 10_000, betweenMs: 10_000, keepAliveMs: 60_000 };

const callOf: ModelCall = {
  model: 'openai/gpt-6-sol',
  settings: undefined,
  system: '',
  messages: [question],
  tools: [],
  maxOutputTokens: 100,
  signal: new AbortController().signal,
  onText() {},
};

/** Calls a server that answers so, and returns the answer with the body of its request. */
async function exchange(
  answer: (response: ServerResponse) => void,
  changes: Partial<ModelCall> = {},
): Promise<{ answered: Promise<ModelAnswer>; body: Promise<Record<string, unknown>> }> {
  const body = Promise.withResolvers<Record<string, unknown>>();
  const server = createServer((request, response) => {
    body.resolve(json(request) as Promise<Record<string, unknown>>);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'retry-after': '7' });
    answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const models = new ProviderModels({ clock: systemClock, silence });
  const answered = models.call({
    model: 'openai/gpt-6-sol',
    settings: { apiKey: 'k', baseUrl: `http://127.0.0.1:${port}/v1`, protocol: 'responses' },
    system: 'Be brief.',
    messages: [question],
    tools: [],
    maxOutputTokens: 100,
    signal: new AbortController().signal,
    onText() {},
    ...changes,
  });
  answered.catch(() => {});
  return { answered, body: body.promise };
}

const named = (type: string, data: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
const added = (output_index: number, item: object) =>
  named('response.output_item.added', { output_index, item });
const done = (output_index: number, item: object) =>
  named('response.output_item.done', { output_index, item });
const text = (output_index: number, delta: string) =>
  named('response.output_text.delta', { output_index, delta });
const created = named('response.created', { response: { status: 'in_progress', output: [] } });
const usage = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 40, cache_write_tokens: 50 },
  output_tokens: 30,
  output_tokens_details: { reasoning_tokens: 20 },
  total_tokens: 130,
};
const completed = named('response.completed', { response: { status: 'completed', usage } });

async function answerTo(...events: string[]): Promise<ModelAnswer> {
  return (await exchange((response) => response.end(events.join('')))).answered;
}

async function bodySent(changes: Partial<ModelCall>): Promise<Record<string, unknown>> {
  const { answered, body } = await exchange(
    (response) => response.end(text(0, 'Hi.') + completed),
    changes,
  );
  await answered;
  return body;
}

const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'c2VjcmV0' };
const call = {
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_1',
  name: 'weather',
  arguments: '{"city":"Köln"}',
};

test('usage has the tokens of the cache and of reasoning', async () => {
  expect(await answerTo(created, text(0, 'Hi.'), completed)).toEqual({
    message: { role: 'assistant', text: 'Hi.', toolCalls: [] },
    finish: 'stop',
    usage: { prompt: 100, completion: 30, cacheRead: 40, cacheWrite: 50, reasoning: 20 },
  });
});

test('tools go beside an effort, nothing is stored, and no schema is made strict', async () => {
  const parameters = { type: 'object', properties: { city: { type: 'string' } } };
  const tools = [{ name: 'weather', description: 'Tells it.', parameters }];

  expect(await bodySent({ tools, effort: 'high' })).toEqual({
    model: 'gpt-6-sol',
    instructions: 'Be brief.',
    input: [{ role: 'user', content: 'Hello?' }],
    max_output_tokens: 100,
    reasoning: { effort: 'high' },
    tools: [{ type: 'function', ...tools[0], strict: false }],
    store: false,
    include: ['reasoning.encrypted_content'],
    stream: true,
  });
});

test.each([
  ['openai/gpt-4.1', false],
  ['openai/ft:gpt-4o-mini-2024-07-18:org::id', false],
  ['openai/gpt-5-chat-latest', false],
  ['azure/plain', false],
  ['openai/o3', true],
  ['openai/o1-mini', true],
  ['openai/gpt-5.4-mini', true],
  ['vllm/qwen3', true],
])('%s is asked for its reasoning: %s', async (model, isAsked) => {
  const known = new KnownModels([{ model: 'azure/plain', abilities: { efforts: [] } }]);
  const { mayReason } = known.takenBy(model, {}, false);

  expect(Object.hasOwn(await bodySent({ model, mayReason }), 'include')).toBe(isAsked);
});

test('a model that refuses to be asked for its reasoning is asked without, now and later', async () => {
  const asked: unknown[] = [];
  const server = createServer(async (request, response) => {
    const { include } = (await json(request)) as { include?: unknown };
    asked.push(include);
    response.writeHead(include === undefined ? 200 : 400, { 'content-type': 'text/event-stream' });
    const message = 'Encrypted content is not supported with this model.';
    response.end(
      include === undefined
        ? text(0, 'Hi.') + completed
        : JSON.stringify({ error: { message, param: 'include', code: null } }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const models = new ProviderModels({ clock: systemClock, silence });
  const settings = { apiKey: 'k', baseUrl: `http://127.0.0.1:${port}`, protocol: 'responses' };
  const ask = () => models.call({ ...callOf, model: 'azure/own-name', settings });

  expect((await ask()).message.text).toBe('Hi.');
  expect((await ask()).message.text).toBe('Hi.');

  const include = ['reasoning.encrypted_content'];
  expect(asked).toEqual([include, undefined, undefined]);
});

test('long ids of calls that begin alike stay different', async () => {
  const ids = ['a', 'b'].map((end) => 'x'.repeat(100) + end);
  const calls = ids.map((id) => ({ id, name: 'weather', input: '{}' }));
  const messages: DialogueMessage[] = [
    question,
    { role: 'assistant', text: '', toolCalls: calls },
    ...ids.map((callId): DialogueMessage => {
      return { role: 'tool', callId, name: 'weather', text: 'rain', isError: false };
    }),
  ];

  for (const protocol of [responses, chat]) {
    const body = JSON.stringify(protocol.bodyOf({ ...callOf, messages }, 'm'));
    const sent = body.match(/(?<="(call_id|tool_call_id|id)":")[^"]+/g) ?? [];
    expect(sent).toHaveLength(4);
    expect(new Set(sent).size).toBe(2);
    for (const id of sent) expect(id.length).toBeLessThanOrEqual(40);
  }
});

test('encrypted reasoning goes back exactly as it came, before the call that it led to', async () => {
  const { message, finish } = await answerTo(
    created,
    added(0, { ...reasoning, encrypted_content: '' }),
    done(0, reasoning),
    added(1, { ...call, arguments: '' }),
    named('response.function_call_arguments.delta', { output_index: 1, delta: call.arguments }),
    done(1, call),
    completed,
  );
  const kept: DialogueMessage = JSON.parse(JSON.stringify(message));
  const result = { callId: 'call_1', name: 'weather', text: 'rain', isError: false };
  const messages: DialogueMessage[] = [question, kept, { role: 'tool', ...result }];

  const { input: same } = await bodySent({ messages });
  const { input: another } = await bodySent({ messages, model: 'openai/gpt-5.4' });
  const { input: later } = await bodySent({ messages: [...messages, question] });

  expect(finish).toBe('tool-calls');
  const { id: _, ...sentCall } = call;
  const sent = [sentCall, { type: 'function_call_output', call_id: 'call_1', output: 'rain' }];
  const asked = { role: 'user', content: 'Hello?' };
  expect(same).toEqual([asked, reasoning, ...sent]);
  expect(another).toEqual([asked, ...sent]);
  // OpenAI ignores the reasoning of earlier exchanges.
  expect(later).toEqual([asked, ...sent, asked]);
});

test('reasoning that nothing follows is not sent back, and so is none that is not encrypted', async () => {
  const cut = await answerTo(
    created,
    done(0, reasoning),
    named('response.incomplete', {
      response: { incomplete_details: { reason: 'max_output_tokens' }, usage },
    }),
  );
  const plain = await answerTo(done(0, { ...reasoning, encrypted_content: null }), completed);

  expect(cut).toMatchObject({ finish: 'length', message: { text: '' } });
  expect(plain.message).not.toHaveProperty('opaque');
  const { input } = await bodySent({ messages: [question, cut.message, question] });
  expect(input).toHaveLength(2);
});

test('the messages of an answer are paragraphs, and keep their phases', async () => {
  const deltas: string[] = [];
  const commentary = { type: 'message', phase: 'commentary', content: [] };
  const final = { type: 'message', phase: 'final_answer', content: [] };
  const { answered } = await exchange(
    (response) =>
      response.end(
        [
          added(0, commentary),
          text(0, 'Let me '),
          text(0, 'see.'),
          done(0, commentary),
          added(1, final),
          text(1, 'Rain.'),
          done(1, final),
          completed,
        ].join(''),
      ),
    { onText: (delta) => deltas.push(delta) },
  );
  const { message } = await answered;

  expect(message.text).toBe('Let me see.\n\nRain.');
  expect(deltas.join('')).toBe(message.text);
  const { input } = await bodySent({ messages: [question, message, question] });
  expect(input).toMatchObject([
    { role: 'user' },
    { role: 'assistant', content: 'Let me see.\n\n', phase: 'commentary' },
    { role: 'assistant', content: 'Rain.', phase: 'final_answer' },
    { role: 'user' },
  ]);
});

test('items may come only when they are done, and unknown ones are ignored', async () => {
  const { message, finish } = await answerTo(
    named('news', { sequence_number: 1 }),
    done(0, { type: 'web_search_call', id: 'ws_1' }),
    done(1, { type: 'message', content: [{ type: 'output_text', text: 'See.' }, { type: 'x' }] }),
    done(2, call),
    completed,
  );

  expect(message).toMatchObject({ text: 'See.', toolCalls: [{ id: 'call_1', name: 'weather' }] });
  expect(finish).toBe('tool-calls');
});

test('a refusal is marked as one', async () => {
  const refusal = named('response.refusal.delta', { output_index: 0, delta: 'I cannot.' });

  expect(await answerTo(created, refusal, completed)).toMatchObject({
    message: { text: 'I cannot.' },
    finish: 'refusal',
  });
});

test.each([
  ['max_output_tokens', 'length'],
  ['content_filter', 'content-filter'],
])('an answer that is incomplete for %s ends with %s', async (reason, finish) => {
  const response = { incomplete_details: { reason }, usage };

  const answer = await answerTo(text(0, 'Hi'), named('response.incomplete', { response }));

  expect(answer).toMatchObject({ finish, message: { text: 'Hi' }, usage: { completion: 30 } });
});

test.each(['something new', undefined])(
  'a response that is incomplete for %s was not finished, and has its usage',
  async (reason) => {
    const response = { incomplete_details: reason && { reason }, usage };

    const answered = answerTo(text(0, 'Hi'), named('response.incomplete', { response }));

    await expect(answered).rejects.toMatchObject({
      fault: 'unavailable',
      text: 'Hi',
      usage: { prompt: 100, completion: 30 },
    });
  },
);

const failedBy = (error: object) => named('response.failed', { response: { error } });

test.each<[string[], object]>([
  [[failedBy({ code: 'server_is_overloaded', message: 'Busy.' })], { fault: 'unavailable' }],
  [[failedBy({ code: 'image_parse_error', message: 'No picture.' })], { fault: 'refused' }],
  [[failedBy({ code: 'failed_to_download_image', message: 'Away.' })], { fault: 'refused' }],
  [[failedBy({ code: 'slow_down', message: 'Slow.' })], { fault: 'unavailable' }],
  [[named('error', { code: null, message: 'An error.', param: null })], { fault: 'unavailable' }],
  [
    [
      added(0, { type: 'reasoning', id: 'rs_1' }),
      failedBy({ code: 'invalid_prompt', message: 'It was flagged.' }),
    ],
    { fault: 'refused', isDeclined: true },
  ],
])('an error before any part of the answer is no work: %j', async (events, expected) => {
  await expect(answerTo(created, ...events)).rejects.toMatchObject({
    ...expected,
    usage: { prompt: 0, completion: 0 },
  });
});

test('a prompt that is refused within an answer is not asked again', async () => {
  const refused = failedBy({ code: 'invalid_prompt', message: 'It was flagged.' });

  await expect(answerTo(created, text(0, 'Half'), refused)).rejects.toMatchObject({
    fault: 'refused',
    isDeclined: true,
    text: 'Half',
    usage: { prompt: null, completion: null },
  });
});

const { id: _itemId, call_id: callId, type: _type, arguments: input, ...named1 } = call;
const taken = { id: callId, ...named1, input };
const said = { type: 'message', content: [{ type: 'output_text', text: 'See.' }] };
const whole = (...output: object[]) =>
  named('response.completed', { response: { status: 'completed', output, usage } });
const begun = added(1, { ...call, arguments: '' });
const argumentsOf = (type: 'delta' | 'done', field: object) =>
  named(`response.function_call_arguments.${type}`, { output_index: 1, ...field });

test.each<[string, string[]]>([
  [
    'items that come twice',
    [done(0, said), done(0, said), done(1, call), done(1, call), completed],
  ],
  [
    'a call that is streamed twice',
    [
      ...Array(2)
        .fill([begun, argumentsOf('delta', { delta: input }), done(1, call)])
        .flat(),
      whole(said, call),
    ],
  ],
  [
    'a call that is never done',
    [text(0, 'See.'), begun, argumentsOf('delta', { delta: input }), completed],
  ],
  [
    'a call whose arguments come whole',
    [text(0, 'See.'), begun, argumentsOf('done', { arguments: input }), completed],
  ],
  ['nothing but a whole response', [created, whole(said, call)]],
  ['everything, and a whole response', [done(0, said), done(1, call), whole(said, call)]],
  ['an index of its own in the whole response', [done(1, call), whole(call, said)]],
])('%s: each item is taken once', async (_what, events) => {
  const { message, finish } = await answerTo(...events);

  expect(message).toMatchObject({ text: 'See.', toolCalls: [taken] });
  expect(finish).toBe('tool-calls');
});

test.each<[string, string, object, object]>([
  [
    'a failure before any part',
    named('response.failed', { response: { error: { code: 'server_error', message: 'oops' } } }),
    { fault: 'unavailable', message: expect.stringContaining('answered 500: oops') },
    { prompt: 0, completion: 0 },
  ],
  [
    'a rate limit',
    named('response.failed', {
      response: { error: { code: 'rate_limit_exceeded', message: 'no' } },
    }),
    { fault: 'unavailable', isRateLimited: true, retryAfterMs: 7_000 },
    { prompt: 0, completion: 0 },
  ],
  [
    'an error event',
    named('error', { code: 'context_length_exceeded', message: 'too long', param: null }),
    { fault: 'refused', message: expect.stringContaining('too long') },
    { prompt: 0, completion: 0 },
  ],
  [
    'an error event of the other form',
    named('error', { error: { type: 'invalid_request_error', message: 'bad', param: null } }),
    { fault: 'refused', message: expect.stringContaining('bad') },
    { prompt: 0, completion: 0 },
  ],
  [
    'a failure within the answer',
    text(0, 'Hi') + named('response.failed', { response: { error: { message: 'oops' }, usage } }),
    { fault: 'unavailable', text: 'Hi', message: expect.stringContaining('failed while') },
    { prompt: 100, completion: 30 },
  ],
  [
    'an end without a word',
    text(0, 'Hi'),
    { fault: 'unavailable', message: expect.stringContaining('makes no sense') },
    { prompt: null, completion: null },
  ],
  [
    'arguments of no call',
    named('response.function_call_arguments.delta', { output_index: 3, delta: '{' }),
    { fault: 'unavailable', message: expect.stringContaining('arguments of no call') },
    { prompt: null, completion: null },
  ],
  [
    'text that is none',
    named('response.output_text.delta', { output_index: 0, delta: 7 }),
    { fault: 'unavailable', message: expect.stringContaining('not what the protocol says') },
    { prompt: null, completion: null },
  ],
])('%s has its fault and its usage', async (_, events, expected, reported) => {
  const failed = answerTo(created, events);

  await expect(failed).rejects.toMatchObject({
    ...expected,
    usage: expect.objectContaining(reported),
  });
});

test('a part of a turn is stored with the model that wrote it', async () => {
  const { message } = await answerTo(done(0, reasoning), done(1, call), completed);

  expect(message.opaque).toEqual({
    model: 'openai/gpt-6-sol',
    parts: [
      {
        type: 'reasoning',
        text: '',
        signed: { openai: { id: 'rs_1', summary: [], encrypted_content: 'c2VjcmV0' } },
      },
      { type: 'tool-call', id: 'call_1' },
    ],
  } satisfies Opaque);
});
