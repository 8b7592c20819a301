/**
 * Deviations of real servers from the documented protocols. Each answer is sent byte for byte as it is
 * written here, and has to be understood.
 */

import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../kernel/clock.ts';
import type { ModelAnswer, ModelCall, ModelError } from './model.ts';
import { ProviderModels } from './models.ts';
import { chat } from './protocols/chat.ts';

const callOf: ModelCall = {
  model: 'ollama/m',
  settings: undefined,
  system: '',
  messages: [{ role: 'user', text: 'Hello?' }],
  tools: [],
  maxOutputTokens: 100,
  signal: new AbortController().signal,
  onText() {},
};
const patience = { firstTokenMs: 10_000, betweenMs: 10_000, keepAliveMs: 60_000 };
/** For servers that fall silent: long enough to read what they have sent. */
const brief = { firstTokenMs: 10_000, betweenMs: 300, keepAliveMs: 60_000 };

/** Calls a server that answers with these bytes. */
async function answerTo(
  model: string,
  answer: (response: ServerResponse) => void,
  onText: (delta: string) => void = () => {},
  silence = patience,
): Promise<ModelAnswer> {
  return (await serverOf(answer, silence)).ask(model, onText);
}

async function serverOf(answer: (response: ServerResponse) => void, silence = patience) {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      // Not reliable: some servers send the same type for streams and documents.
      const headers = { 'content-type': 'application/json', 'retry-after': '7' };
      response.writeHead(200, headers);
      answer(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const models = new ProviderModels({
    clock: systemClock,
    silence,
  });
  return {
    ask: (model: string, onText: (delta: string) => void = () => {}) =>
      models.call({ ...callOf, model, settings: { apiKey: 'key', baseUrl }, onText }),
  };
}

const sse = (...events: readonly object[]) =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
const chats = ['openai/m', 'ollama/m'];

test.each(chats)(
  '%s: chunks without indexes, roles, types and choices are accepted',
  async (model) => {
    const call = (id: string | undefined, name: string | undefined, args: unknown) => ({
      choices: [
        {
          delta: {
            role: '',
            tool_calls: [{ ...(id && { id }), type: '', function: { name, arguments: args } }],
          },
        },
      ],
    });

    const { message, finish, usage } = await answerTo(model, (response) =>
      response.end(
        sse(
          { choices: [{ delta: { role: 'model', content: 'See: ' } }] },
          call('a', 'one', '{"x":'),
          call(undefined, undefined, '1}'),
          call('b', 'two', { y: 2 }),
          { choices: [{ delta: {}, finish_reason: 'stop' }] },
          { usage: { prompt_tokens: 7, total_tokens: 'many' } },
        ),
      ),
    );

    expect(message.text).toBe('See: ');
    expect(message.toolCalls).toEqual([
      { id: 'a', name: 'one', input: '{"x":1}' },
      { id: 'b', name: 'two', input: '{"y":2}' },
    ]);
    expect(finish).toBe('tool-calls');
    expect(usage).toEqual({ prompt: 7, completion: null });
  },
);

const made = (call: object | null) => ({
  choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }],
});
const madeEnd = { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] };

/** The one call of `one` with `{"x":1}`, in deltas. */
const piecesOfCall: [string, (object | null)[]][] = [
  [
    'blank ids and names with every piece',
    [
      { index: 0, id: 'a', type: 'function', function: { name: 'one', arguments: '' } },
      { index: 0, id: '', type: 'function', function: { name: '', arguments: '{"x"' } },
      { index: 0, id: '', type: 'function', function: { name: ' ', arguments: ':1}' } },
    ],
  ],
  [
    'its id with every piece, and blank names or none',
    [
      { index: 0, id: 'a', function: { name: 'one', arguments: '' } },
      { index: 0, id: 'a', function: { name: '', arguments: '{"x"' } },
      { index: 0, id: 'a', function: { name: null, arguments: ':1}' } },
    ],
  ],
  [
    'its id with every piece, and no number',
    [
      { id: 'a', function: { name: 'one', arguments: '' } },
      { id: 'a', function: { name: '', arguments: '{"x":1}' } },
    ],
  ],
  [
    'a blank name before its name',
    [
      { index: 0, id: 'a', function: { name: '', arguments: '' } },
      { index: 0, id: 'a', function: { name: 'one', arguments: '{"x":1}' } },
    ],
  ],
  [
    'its arguments before its name',
    [
      { index: 0, id: 'a', function: { arguments: '{"x"' } },
      { index: 0, function: { name: 'one', arguments: ':1}' } },
    ],
  ],
  [
    'its id alone, then its name alone',
    [
      { index: 0, id: 'a', type: 'function' },
      { index: 0, function: { arguments: '' } },
      { index: 0, function: { name: 'one' } },
      { index: 0, function: { arguments: '{"x":1}' } },
    ],
  ],
  [
    'nothings around it',
    [null, { index: 0, id: 'a', function: { name: 'one', arguments: '{"x":1}' } }, null],
  ],
];

test.each(chats.flatMap((model) => piecesOfCall.map((all) => [model, ...all] as const)))(
  '%s: a call that comes with %s is one call',
  async (model, _what, pieces) => {
    const { message, finish } = await answerTo(model, (response) =>
      response.end(sse(...pieces.map(made), madeEnd)),
    );

    expect(message.toolCalls).toEqual([{ id: 'a', name: 'one', input: '{"x":1}' }]);
    expect(finish).toBe('tool-calls');
  },
);

test.each(chats)('%s: calls whose names arrive late are kept apart', async (model) => {
  const { message } = await answerTo(model, (response) =>
    response.end(
      sse(
        made({ index: 0, id: 'a', type: 'function' }),
        made({ index: 1, id: 7, function: { name: '', arguments: '{"y"' } }),
        made({ index: 2, id: 'c', function: { name: '', arguments: '{"z"' } }),
        made({ index: 0, function: { name: 'one', arguments: '{}' } }),
        made({ index: 1, function: { name: 'two', arguments: ':2}' } }),
        made({ index: 2, id: 'c', function: { name: '', arguments: ':3}' } }),
        made({ index: 3, type: 'function', function: { name: '', arguments: '' } }),
        madeEnd,
      ),
    ),
  );

  expect(message.toolCalls).toEqual([
    { id: 'a', name: 'one', input: '{}' },
    { id: '7', name: 'two', input: '{"y":2}' },
    { id: 'c', name: '_', input: '{"z":3}' },
  ]);
});

test.each(chats)('%s: calls that all have the index 0 are kept apart', async (model) => {
  const { message } = await answerTo(model, (response) =>
    response.end(
      sse(
        made({ index: 0, id: 'a', function: { name: 'one', arguments: '{"x"' } }),
        made({ index: 0, function: { arguments: ':1}' } }),
        made({ index: 0, id: 'b', function: { name: 'two', arguments: '' } }),
        made({ index: 0, id: 'b', function: { arguments: '{"y":2}' } }),
        madeEnd,
      ),
    ),
  );

  expect(message.toolCalls).toEqual([
    { id: 'a', name: 'one', input: '{"x":1}' },
    { id: 'b', name: 'two', input: '{"y":2}' },
  ]);
});

test.each(chats)('%s: endless arguments are refused, also without a name', async (model) => {
  const piece = { index: 0, id: 'a', function: { arguments: 'x'.repeat(1_000_000) } };

  const call = answerTo(model, (response) =>
    response.end(sse(...Array.from({ length: 17 }, () => made(piece)))),
  );

  await expect(call).rejects.toMatchObject({
    fault: 'refused',
    message: expect.stringContaining('characters of arguments'),
  });
});

test.each(chats)('%s: fields beside the answer may have any form', async (model) => {
  const beside = {
    id: 7,
    created: 'now',
    model: {},
    error: null,
    choices: [
      {
        index: 0,
        delta: { content: 'Hi.', annotations: [{}], reasoning: {} },
        logprobs: { tokens: ['Hi.'] },
        finish_reason: 'stop',
      },
    ],
  };

  const { message } = await answerTo(model, (response) => response.end(sse(beside)));

  expect(message.text).toBe('Hi.');
});

test.each(
  chats.flatMap((model) => ['', ' ', 'null', null, 7].map((reason) => [model, reason] as const)),
)('%s: the finish_reason %j is none', async (model, finish_reason) => {
  const piece = (content: string) => ({
    choices: [{ index: 0, delta: { content }, finish_reason }],
  });

  const cut = answerTo(model, (response) => response.end(sse(piece('Hi '), piece('th'))));

  await expect(cut).rejects.toMatchObject({ fault: 'unavailable', text: 'Hi th' });
});

test.each(chats)('%s: a complete answer needs no finish reason', async (model) => {
  const said = { choices: [{ index: 0, delta: { content: 'Hi.' } }] };
  const call = made({ index: 0, id: 'a', function: { name: '', arguments: '{}' } });
  const done = (...events: object[]) =>
    answerTo(model, (response) => response.end(`${sse(...events)}data:  [DONE] \n\n`));

  expect(await done(said)).toMatchObject({ message: { text: 'Hi.' }, finish: 'other' });
  expect(await done(said, call)).toMatchObject({
    message: { text: 'Hi.', toolCalls: [{ id: 'a', name: '_', input: '{}' }] },
    finish: 'tool-calls',
  });
  await expect(done({ choices: [] })).rejects.toMatchObject({ fault: 'unavailable' });
});

test.each(
  chats.flatMap((model) =>
    ['error', 'abort', 'insufficient_system_resource'].map((reason) => [model, reason] as const),
  ),
)('%s: an answer that ends with %s was not finished', async (model, finish_reason) => {
  const call = made({ index: 0, id: 'a', function: { name: 'one', arguments: '' } });
  const end = { choices: [{ index: 0, delta: { content: 'Half' }, finish_reason }] };
  const counted = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } };

  const answered = answerTo(model, (response) => response.end(sse(call, end, counted)));

  await expect(answered).rejects.toMatchObject({
    fault: 'unavailable',
    message: expect.stringContaining(finish_reason),
    text: 'Half',
    usage: { prompt: 5, completion: 2 },
  });
});

test.each(chats)('%s: an error that names a status keeps the usage beside it', async (model) => {
  const usage = { prompt_tokens: 5, completion_tokens: 2 };
  const failed = { error: { code: 503, message: 'overloaded' }, usage };

  const answered = answerTo(model, (response) => response.end(sse(failed)));

  await expect(answered).rejects.toMatchObject({
    fault: 'unavailable',
    message: expect.stringContaining('answered 503'),
    usage: { prompt: 5, completion: 2 },
  });
});

test.each(chats)('%s: model_length is the limit of tokens', async (model) => {
  const end = { choices: [{ index: 0, delta: { content: 'Hi.' }, finish_reason: 'model_length' }] };

  expect(await answerTo(model, (response) => response.end(sse(end)))).toMatchObject({
    message: { text: 'Hi.' },
    finish: 'length',
  });
});

test.each(chats)('%s: a refusal needs no finish reason', async (model) => {
  const refused = { choices: [{ index: 0, delta: { refusal: 'I cannot.' } }] };

  const answered = answerTo(model, (response) => response.end(`${sse(refused)}data: [DONE]\n\n`));

  expect(await answered).toMatchObject({ message: { text: 'I cannot.' }, finish: 'refusal' });
});

test.each(chats)('%s: events without data are keep-alives', async (model) => {
  const said = { choices: [{ index: 0, delta: { content: 'Hi.' }, finish_reason: 'stop' }] };

  const { message } = await answerTo(model, (response) =>
    response.end(`data:\n\ndata: \n\n${sse(said)}`),
  );

  expect(message.text).toBe('Hi.');
});

test.each<[string, object[]]>([
  ['x_groq', [{ choices: [], x_groq: { usage: { prompt_tokens: 5, completion_tokens: 2 } } }]],
  [
    'a choice',
    [{ choices: [{ index: 0, delta: {}, usage: { prompt_tokens: 5, completion_tokens: 2 } }] }],
  ],
  [
    'a piece before zeros',
    [
      { choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } },
      { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } },
    ],
  ],
])('usage may arrive in %s', async (_what, events) => {
  const said = { choices: [{ index: 0, delta: { content: 'Hi.' }, finish_reason: 'stop' }] };

  const { usage } = await answerTo('ollama/m', (response) => response.end(sse(said, ...events)));

  expect(usage).toEqual({ prompt: 5, completion: 2 });
});

test.each(chats)('%s: a think tag before the answer is not part of it', async (model) => {
  const deltas: string[] = [];
  const whole = '\n<think>\nHm. {"a":1}\n</think>\n\n{"words": "<think>"}';
  const pieces = [...whole].map((content) => ({ choices: [{ index: 0, delta: { content } }] }));
  const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };

  const { message } = await answerTo(
    model,
    (response) => response.end(sse(...pieces, end)),
    (delta) => deltas.push(delta),
  );

  expect(message.text).toBe('{"words": "<think>"}');
  expect(deltas.join('')).toBe(message.text);
});

test('an answer that is cut inside a think tag fails with the text that had arrived', async () => {
  const thought = { choices: [{ index: 0, delta: { content: '<think>Hm' } }] };

  const cut = answerTo('ollama/m', (response) => response.end(sse(thought)));

  await expect(cut).rejects.toMatchObject({ text: '<think>Hm' });
});

test.each<[object, object]>([
  [{ code: 401 }, { fault: 'credentials' }],
  [{ code: 429 }, { fault: 'unavailable', retryAfterMs: 7_000 }],
  [{ type: 'overloaded_error' }, { fault: 'unavailable', retryAfterMs: 7_000 }],
  [{ type: 'invalid_request_error' }, { fault: 'refused' }],
])(
  'an error %j in place of a stream is treated as the status that it names',
  async (error, expected) => {
    for (const model of ['openai/m', 'ollama/m', 'anthropic/m']) {
      const failed = answerTo(model, (response) => {
        response.end(sse({ error: { message: 'no', ...error } }));
      });

      const usage = { prompt: 0, completion: 0 };
      await expect(failed).rejects.toMatchObject({ ...expected, usage });
    }
  },
);

test.each(chats)('%s: an event that is too long is refused, and so not repeated', async (model) => {
  const endless = answerTo(model, (response) => {
    response.end(`data: ${'x'.repeat(33 * 1024 * 1024)}`);
  });

  await expect(endless).rejects.toMatchObject({
    fault: 'refused',
    message: expect.stringContaining('characters of one event'),
  });
});

test.each(chats)('%s: zero tokens of an answer that has parts are not reported', async (model) => {
  const said = { choices: [{ index: 0, delta: { content: 'Hi.' }, finish_reason: 'stop' }] };
  const counted = async (prompt_tokens: number, completion_tokens: number) => {
    const usage = { prompt_tokens, completion_tokens };
    const events = sse(said, { choices: [], usage });
    return (await answerTo(model, (response) => response.end(events))).usage;
  };

  expect(await counted(0, 0)).toEqual({ prompt: null, completion: null });
  expect(await counted(7, 0)).toEqual({ prompt: 7, completion: null });
});

test.each<[string, (args: string) => object]>([
  ['neither ids nor indexes', (args) => ({ function: { name: 'one', arguments: args } })],
  ['no ids and one index', (args) => ({ index: 0, function: { name: 'one', arguments: args } })],
])('two whole calls with %s are two', async (_what, call) => {
  const { message } = await answerTo('ollama/m', (response) =>
    response.end(sse(made(call('{"x":1}')), made(call('{"x":2}')), madeEnd)),
  );

  expect(message.toolCalls).toMatchObject([
    { name: 'one', input: '{"x":1}' },
    { name: 'one', input: '{"x":2}' },
  ]);
});

test('the details of reasoning go back as they came, their texts joined, with the answer', async () => {
  const detail = (more: object) => ({ format: 'google-gemini-v1', index: 0, ...more });
  const chunk = (...reasoning_details: (object | null)[]) => ({
    choices: [{ index: 0, delta: { reasoning: 'x', reasoning_details } }],
  });
  const text = { type: 'reasoning.text', signature: null };
  const encrypted = detail({ type: 'reasoning.encrypted', data: 'QUJD', id: 'a', index: 1 });
  const another = { ...encrypted, data: 'REVG' };
  const { message } = await answerTo('router/m', (response) =>
    response.end(
      sse(
        chunk(detail({ ...text, text: 'Hm' }), null),
        chunk(detail({ ...text, text: ', yes.', signature: 'c2ln' })),
        chunk(encrypted, another),
        made({ index: 0, id: 'a', function: { name: 'one', arguments: '{}' } }),
        madeEnd,
      ),
    ),
  );
  const kept = JSON.parse(JSON.stringify(message));
  const sentBy = (model: string) => {
    const body = chat.bodyOf({ ...callOf, model, messages: [kept] }, 'm');
    return JSON.parse(JSON.stringify((body['messages'] as object[])[0]));
  };

  const sent = sentBy('router/m');
  expect(sent.reasoning_details).toEqual([
    detail({ ...text, text: 'Hm, yes.', signature: 'c2ln' }),
    encrypted,
    another,
  ]);
  expect(sent).not.toHaveProperty('reasoning');
  expect(sentBy('router/another')).not.toHaveProperty('reasoning_details');
});

test('details of reasoning beyond their bound are left out, because a part of them would be refused', async () => {
  const data = 'x'.repeat(600 * 1024);
  const reasoning_details = [{ type: 'reasoning.encrypted', data }];
  const chunk = { choices: [{ index: 0, delta: { reasoning_details } }] };
  const said = { choices: [{ index: 0, delta: { content: 'Hi.' }, finish_reason: 'stop' }] };

  const { message } = await answerTo('router/m', (response) =>
    response.end(sse(chunk, chunk, chunk, said)),
  );

  expect(message).toEqual({ role: 'assistant', text: 'Hi.', toolCalls: [] });
});

const role = { choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] };
const messageStart = { type: 'message_start', message: { usage: { input_tokens: 20 } } };

test.each<[string, object[], object, object]>([
  ['ollama/m', [role], { code: 429 }, { isRateLimited: true }],
  ['ollama/m', [role], { type: 'engine_overloaded_error', code: null }, { isRateLimited: false }],
  ['ollama/m', [role], { type: 'a new one' }, { isRateLimited: false }],
  ['ollama/m', [role], { code: 'invalid_prompt' }, { fault: 'refused', isDeclined: true }],
  ['anthropic/m', [messageStart], { type: 'overloaded_error' }, { isRateLimited: false }],
  [
    'anthropic/m',
    [messageStart, { type: 'ping' }],
    { type: 'invalid_request_error' },
    { fault: 'refused' },
  ],
])(
  '%s: after %j, which is no part of the answer, the error %j is the status that it names',
  async (model, events, error, expected) => {
    const failed = answerTo(model, (response) => {
      response.end(sse(...events, { type: 'error', error: { message: 'no', ...error } }));
    });

    await expect(failed).rejects.toMatchObject({
      fault: 'unavailable',
      ...expected,
      usage: { prompt: 0, completion: 0 },
    });
  },
);

test.each<[object, object, object]>([
  [
    { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' },
    { fault: 'refused', isDeclined: true },
    { prompt: 20, completion: null },
  ],
  [
    { type: 'invalid_request_error', message: 'no' },
    { fault: 'refused', isDeclined: false },
    { prompt: 20, completion: null },
  ],
  [
    { type: 'invalid_request_error', code: 'tool_use_failed', message: 'no' },
    { fault: 'unavailable', isDown: false },
    { prompt: 20, completion: null },
  ],
  [
    { type: 'overloaded_error', message: 'no' },
    { fault: 'unavailable', isDown: false },
    { prompt: 20, completion: null },
  ],
])(
  'the error %j within an answer is %j, with the text and what was reported',
  async (error, expected, usage) => {
    const block = { type: 'content_block_start', index: 0, content_block: { type: 'text' } };
    const delta = { type: 'text_delta', text: 'Half' };
    const half = { type: 'content_block_delta', index: 0, delta };
    const failed = answerTo('anthropic/m', (response) => {
      response.end(sse(messageStart, block, half, { type: 'error', error }));
    });

    await expect(failed).rejects.toMatchObject({ ...expected, text: 'Half', seenBytes: 4, usage });
  },
);

test.each(['', ': processing\n\n', sse(role)])(
  'a stream of %j, which ends before its answer begins, is of a provider that is down',
  async (text) => {
    const failed = answerTo('ollama/m', (response) => response.end(text));

    await expect(failed).rejects.toMatchObject({ isDown: true, wasLost: true });
  },
);

test.each([
  ['openai/m', { choices: [{ index: 0, delta: { content: 42 } }] }],
  ['ollama/m', { choices: [{ index: 0, delta: { content: 42 } }] }],
  [
    'anthropic/m',
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 7 } },
  ],
])('%s: an event that violates the protocol is reported as such', async (model, event) => {
  const begin = { type: 'message_start', message: {}, choices: [] };
  const failed = answerTo(model, (response) => response.end(sse(begin, event)));

  await expect(failed).rejects.toMatchObject({
    fault: 'unavailable',
    message: expect.stringMatching(/makes no sense: an event is not what the protocol says$/),
  });
});

test.each(chats)('%s: of usage in every chunk the last one is used', async (model) => {
  const piece = (content: string, completion_tokens: number) => ({
    choices: [{ index: 0, delta: { content } }],
    usage: { prompt_tokens: 5, completion_tokens },
  });

  const cut = answerTo(model, (response) => response.end(sse(piece('a', 1), piece('b', 2))));

  await expect(cut).rejects.toMatchObject({
    fault: 'unavailable',
    text: 'ab',
    usage: { prompt: 5, completion: 2 },
  });
});

test.each(chats)('%s: line ends and chunk borders may be anywhere', async (model) => {
  const text = [
    ': a comment',
    'event: x',
    `data:${JSON.stringify({ choices: [{ index: 0, delta: { content: 'Grüße 🌍' } }] })}`,
    '',
    'data: {"choices":[{"index":0,"delta":{},',
    'data: "finish_reason":"stop"}]}',
    '',
    'data: [DONE]',
  ].join('\r\n');

  const { message, finish } = await answerTo(model, (response) => {
    Readable.from(
      Buffer.from(text)
        .values()
        .map((byte) => Buffer.of(byte)),
    ).pipe(response);
  });

  expect(message.text).toBe('Grüße 🌍');
  expect(finish).toBe('stop');
});

test.each(chats)(
  '%s: an answer is whole when its connection breaks after its end',
  async (model) => {
    const answer = await answerTo(model, (response) =>
      response.write(
        sse(
          { choices: [{ index: 0, delta: { content: 'Hi.' } }] },
          { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
        ),
        () => response.destroy(),
      ),
    );

    expect(answer.message.text).toBe('Hi.');
    expect(answer.usage).toEqual({ prompt: null, completion: null });
  },
);

test.each([
  [{ error: 'model is loading' }, 'model is loading'],
  [{ error: { message: 'out of memory', code: 500 } }, 'out of memory'],
  [{ object: 'error', message: 'too much', code: 503 }, 'too much'],
])('an error of the form %o within a stream is unavailable', async (event, words) => {
  const failure = await answerTo('ollama/m', (response) =>
    response.end(sse(event, { choices: [{ index: 0, delta: { content: 'more' } }] })),
  ).catch((error: ModelError) => error);

  expect(failure).toMatchObject({ fault: 'unavailable', text: '' });
  expect((failure as ModelError).message).toContain(words);
});

test.each(['openai/m', 'ollama/m', 'anthropic/m'])(
  '%s: an answer that is no stream of events is unavailable',
  async (model) => {
    const page = answerTo(model, (response) => response.end('<html>Welcome</html>'));

    await expect(page).rejects.toMatchObject({ fault: 'unavailable', text: '' });
  },
);

const parts = [
  { type: 'text', text: 'Grüße ' },
  { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
  { type: 'text', text: '🌍' },
  null,
];

test.each(chats)('%s: a content list is joined to a text', async (model) => {
  const { message } = await answerTo(model, (response) =>
    response.end(
      sse(
        { choices: [{ index: 0, delta: { content: parts } }] },
        { choices: [{ index: 0, delta: { content: [] } }] },
        { choices: [{ index: 0, delta: { content: '!' }, finish_reason: 'stop' }] },
      ),
    ),
  );

  expect(message.text).toBe('Grüße 🌍!');
});

test.each(chats)('%s: a document may omit and add the same fields as a stream', async (model) => {
  const call = (name: string, args: unknown) => ({ function: { name, arguments: args } });
  const document = {
    choices: [
      {
        message: {
          role: 'model',
          content: parts,
          tool_calls: [call('one', 'x=1'), call('two', { y: 2 }), call('two', 'y=3')],
        },
      },
    ],
    usage: { prompt_tokens: 7, total_tokens: 'many' },
  };

  const { message, finish, usage } = await answerTo(model, (response) =>
    response.end(JSON.stringify(document)),
  );

  expect(message.text).toBe('Grüße 🌍');
  expect(message.toolCalls.map(({ name, input }) => [name, input])).toEqual([
    ['one', 'x=1'],
    ['two', '{"y":2}'],
    ['two', 'y=3'],
  ]);
  expect(new Set(message.toolCalls.map(({ id }) => id)).size).toBe(3);
  expect(finish).toBe('tool-calls');
  expect(usage).toEqual({ prompt: 7, completion: null });
});

const documents: [string, object][] = [
  ...chats.map((model): [string, object] => [
    model,
    { choices: [{ index: 0, message: { content: 'Grüße 🌍' }, finish_reason: null }] },
  ]),
  ['anthropic/m', { type: 'message', content: [{ type: 'text', text: 'Grüße 🌍' }] }],
];

test.each(documents)(
  '%s: a document does not have to say why it ended',
  async (model, document) => {
    const answer = await answerTo(model, (response) => response.end(JSON.stringify(document)));

    expect(answer).toEqual({
      message: { role: 'assistant', text: 'Grüße 🌍', toolCalls: [] },
      finish: 'other',
      usage: { prompt: null, completion: null },
    });
  },
);

test.each(documents)(
  '%s: a document may be laid out, and comes as it likes',
  async (model, one) => {
    const text = Buffer.from(`\ufeff \n\n ${JSON.stringify(one, null, 2)}\n`);

    const { message } = await answerTo(model, (response) => {
      Readable.from(text.values().map((byte) => Buffer.of(byte))).pipe(response);
    });

    expect(message.text).toBe('Grüße 🌍');
  },
);

test.each(documents)('%s: a document that can be parsed is complete', async (model, one) => {
  const { message } = await answerTo(model, (response) =>
    response.write(JSON.stringify(one), () => response.destroy()),
  );

  expect(message.text).toBe('Grüße 🌍');
});

test('messages: an error event without a type is an error', async () => {
  const error = { message: 'no room' };

  const call = answerTo('anthropic/m', (response) => response.end(sse({ error })));

  await expect(call).rejects.toMatchObject({ message: expect.stringContaining('no room') });
});

const hello = [
  { type: 'message_start', message: { id: 'm', role: 'assistant', content: [] } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi.' } },
  { type: 'content_block_stop', index: 0 },
];
const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' } };

test('messages: unknown events are ignored, and missing counts are null', async () => {
  const { message, usage } = await answerTo('anthropic/m', (response) =>
    response.end(sse({ type: 'news' }, ...hello, end, { type: 'message_stop' })),
  );

  expect(message.text).toBe('Hi.');
  expect(usage).toEqual({ prompt: null, completion: null });
});

test('messages: blocks and deltas of unknown kinds are ignored', async () => {
  const [start, ...text] = hello;
  const fact = { type: 'content_block_delta', index: 0, delta: { type: 'fact_delta', fact: 1 } };

  const { message } = await answerTo('anthropic/m', (response) =>
    response.end(
      sse(
        start as object,
        { type: 'content_block_start', index: 0, content_block: { type: 'facts', facts: [] } },
        fact,
        { ...fact, delta: { type: 'text_delta', text: 'A fact.' } },
        { type: 'content_block_stop', index: 0 },
        { ...text[0], index: 1 },
        { ...fact, index: 1 },
        { ...text[1], index: 1 },
        { ...text[2], index: 1 },
        end,
        { type: 'message_stop' },
      ),
    ),
  );

  expect(message.text).toBe('Hi.');
});

test('messages: the start event of a block may have text', async () => {
  const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' };
  const text = { type: 'text', text: 'Oh. ' };

  const { message } = await answerTo('anthropic/m', (response) =>
    response.end(
      sse(
        hello[0] as object,
        { type: 'content_block_start', index: 0, content_block: thinking },
        { type: 'content_block_stop', index: 0 },
        { type: 'content_block_start', index: 1, content_block: text },
        { ...hello[2], index: 1 },
        { ...hello[3], index: 1 },
        end,
        { type: 'message_stop' },
      ),
    ),
  );

  expect(message.text).toBe('Oh. Hi.');
  expect(message.opaque).toMatchObject({ parts: [{ type: 'reasoning', text: 'Hm.' }, {}] });
});

test('messages: a zero at the end does not reset a count', async () => {
  const start = { type: 'message_start', message: { usage: { input_tokens: 10 } } };
  const cost = { input_tokens: 0, output_tokens: 9 };

  const { usage } = await answerTo('anthropic/m', (response) =>
    response.end(sse(start, ...hello.slice(1), { ...end, usage: cost }, { type: 'message_stop' })),
  );

  expect(usage).toEqual({ prompt: 10, completion: 9 });
});

test('messages: cached tokens count as prompt', async () => {
  const counts = { input_tokens: 10, cache_read_input_tokens: 200, output_tokens: 1 };
  const start = { type: 'message_start', message: { id: 'm', usage: counts } };
  const cost = { output_tokens: 9, cache_creation_input_tokens: 3 };

  const { usage } = await answerTo('anthropic/m', (response) =>
    response.end(sse(start, ...hello.slice(1), { ...end, usage: cost }, { type: 'message_stop' })),
  );

  expect(usage).toEqual({ prompt: 213, completion: 9, cacheRead: 200, cacheWrite: 3 });
});

test.each([
  [
    {
      prompt_tokens_details: { cached_tokens: 40 },
      completion_tokens_details: { reasoning_tokens: 3 },
    },
    { completion: 9, cacheRead: 40, reasoning: 3 },
  ],
  [
    { prompt_cache_hit_tokens: 40, prompt_cache_miss_tokens: 60 },
    { completion: 9, cacheRead: 40 },
  ],
  [{ cached_tokens: 40 }, { completion: 9, cacheRead: 40 }],
  [
    { prompt_tokens_details: { cached_tokens: 40, cache_write_tokens: 50 } },
    { completion: 9, cacheRead: 40, cacheWrite: 50 },
  ],
  // More than there is.
  [
    { cached_tokens: 400, reasoning_tokens: 90 },
    { completion: 9, cacheRead: 100, reasoning: 9 },
  ],
  // Reasoning beside the answer.
  [
    { total_tokens: 139, completion_tokens_details: { reasoning_tokens: 30 } },
    { completion: 39, reasoning: 30 },
  ],
  [{ prompt_tokens_details: null, completion_tokens_details: 'none' }, { completion: 9 }],
])('chats: cached and reasoning tokens are read from %j', async (details, expected) => {
  const said = { choices: [{ index: 0, delta: { content: 'Hi.' }, finish_reason: 'stop' }] };
  const counts = { prompt_tokens: 100, completion_tokens: 9, ...details };

  const { usage } = await answerTo('ollama/m', (response) =>
    response.end(sse(said, { choices: [], usage: counts })),
  );

  expect(usage).toEqual({ prompt: 100, ...expected });
});

const wholes: [string, string][] = [
  ['anthropic/m', sse(...hello, end, { type: 'message_stop' })],
  [
    'openai/m',
    `${sse({ choices: [{ index: 0, delta: { content: 'Hi.' }, finish_reason: 'stop' }] })}data: [DONE]\n\n`,
  ],
];

test.each(wholes)('%s: an answer does not wait for its connection to end', async (model, text) => {
  const { message } = await answerTo(model, (response) => response.write(text));

  expect(message.text).toBe('Hi.');
});

test.each(wholes)('%s: a connection may end a little after its answer', async (model, text) => {
  const ended = Promise.withResolvers<boolean>();
  const server = await serverOf((response) => {
    response.once('close', () => ended.resolve(response.writableFinished));
    response.write(text);
    setTimeout(() => response.end(), 50);
  });

  await server.ask(model);

  // Only then it can be reused.
  expect(await ended.promise).toBe(true);
});

test.each(chats)(
  '%s: an answer that is finished does not wait for a stream to end',
  async (model) => {
    const said = { choices: [{ index: 0, delta: { content: 'Hi.' }, finish_reason: 'stop' }] };
    const usage = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } };

    const answer = await answerTo(
      model,
      (response) => void response.write(sse(said, usage)),
      undefined,
      brief,
    );

    expect(answer).toMatchObject({ message: { text: 'Hi.' }, usage: { prompt: 5, completion: 2 } });
  },
);

test.each(['closes', 'stays silent'])(
  'messages: an answer that says why it stopped is whole when the stream then %s',
  async (ending) => {
    const events = sse(
      { type: 'message_start', message: { usage: { input_tokens: 5 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi.' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
    );

    const answer = await answerTo(
      'anthropic/m',
      (response) => void (ending === 'closes' ? response.end(events) : response.write(events)),
      undefined,
      brief,
    );

    expect(answer).toMatchObject({
      message: { text: 'Hi.' },
      finish: 'stop',
      usage: { prompt: 5, completion: 2 },
    });
  },
);

test.each(chats)('%s: a think tag that used up the token limit is not an answer', async (model) => {
  const thought = { choices: [{ index: 0, delta: { content: '<think>Hm' } }] };
  const end = { choices: [{ index: 0, delta: {}, finish_reason: 'length' }] };

  const { message, finish } = await answerTo(model, (response) => response.end(sse(thought, end)));

  expect({ text: message.text, finish }).toEqual({ text: '', finish: 'length' });
});
