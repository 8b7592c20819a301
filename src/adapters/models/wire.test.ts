/** An exchange with a provider is bounded, also with a faulty or hostile provider. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Protocol } from './providers.ts';
import { Wire, type WireFault } from './wire.ts';
import type { TimeLimits } from './wire-timers.ts';

const silence = { firstTokenMs: 10_000, betweenMs: 10_000, keepAliveMs: 60_000 };
const bounds = { stream: 10_000, document: 5_000 };

/** The result of an exchange with a server that answers so. */
async function exchangeWith(
  answer: (response: ServerResponse) => void,
  protocol: Protocol = 'chat',
  limits: TimeLimits = silence,
  bytesMax = bounds,
) {
  const closed = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    response.once('close', () => closed.resolve());
    answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const texts: string[] = [];
  const wire = new Wire({
    protocol,
    signal: new AbortController().signal,
    limits,
    bounds: bytesMax,
    onText: (part) => texts.push(part),
  });
  onTestFinished(() => wire.close());
  let text = '';
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    text = await (await wire.fetch(url)).text();
  } catch {
    // The fault has the reason.
  }
  return { fault: wire.fault, text, texts, closed: closed.promise };
}

function endless(piece: string): Readable {
  return Readable.from(
    (function* () {
      for (;;) yield piece;
    })(),
  );
}

test.each<[string, string, string]>([
  ['a stream', ': still thinking\n\n', '10000 bytes'],
  ['a stream with answers in it', 'data: {"choices":[]}\n\n', '10000 bytes'],
  ['a document', '{"choices": ', '5000 bytes'],
  ['blanks before anything', ' ', '10000 bytes'],
])('%s without end is refused, and its connection is closed', async (_what, piece, detail) => {
  const { fault, closed } = await exchangeWith((response) => {
    endless(piece).pipe(response);
  });

  expect(fault).toEqual<WireFault>({ kind: 'excessive', detail });
  await closed;
});

test.each([
  ['of nothing', 'data: {"choices":[]}\n\n'],
  ['of text', 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'],
  ['of keep-alives', ': still thinking\n\n'],
])('other work has turns while a provider floods the platform with events %s', async (_, piece) => {
  const bytes = 4 * 1024 * 1024;
  let turns = 0;
  let isReading = true;
  const count = () => {
    turns += 1;
    if (isReading) setImmediate(count);
  };
  setImmediate(count);
  const flood = Buffer.from(piece.repeat(bytes / piece.length));
  const limits = { stream: 2 * bytes, document: bytes };
  await exchangeWith((response) => response.end(flood), 'chat', silence, limits);
  isReading = false;
  // The socket gives 64 KiB at a time.
  expect(turns).toBeGreaterThanOrEqual(bytes / 65_536);
});

test('a document that nests very deeply is refused before it is parsed', async () => {
  const deep = `{"choices":${'['.repeat(100_000)}`;
  const limits = { stream: 200_000, document: 200_000 };
  const { fault } = await exchangeWith((response) => response.end(deep), 'chat', silence, limits);
  expect(fault).toEqual({ kind: 'malformed', detail: 'it is not JSON' });
});

test('an error body without end is cut, and its connection is closed', async () => {
  const { fault, closed } = await exchangeWith((response) => {
    response.writeHead(400);
    endless('no. ').pipe(response);
  });

  expect(fault).toMatchObject({ kind: 'status', status: 400 });
  expect((fault as { message: string }).message.length).toBeLessThan(1024 * 1024);
  await closed;
});

test('a connection whose body does not end after the answer is closed', async () => {
  const { fault, text, closed } = await exchangeWith((response) => {
    response.write('data: {"choices":[]}\n\ndata: [DONE]\n\n');
  });

  expect(fault).toBeNull();
  expect(text).toBe('data: {"choices":[]}\n\n');
  await closed;
});

test('a document is passed on as the events of a stream', async () => {
  const { text } = await exchangeWith((response) =>
    response.end('{"choices":[{"message":{"content":"Hi."},"index":0,"finish_reason":"stop"}]}'),
  );

  const chunk = { choices: [{ index: 0, finish_reason: 'stop', delta: { content: 'Hi.' } }] };
  expect(text).toMatch(/^data: .+\n\n$/);
  expect(JSON.parse(text.slice(6))).toEqual(chunk);
});

test('text is taken directly until a part of another kind; all later parts follow it through the SDK, in order', async () => {
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const call = { index: 0, id: 'a', function: { name: 'echo', arguments: '{}' } };
  const { texts, text } = await exchangeWith((response) => {
    response.write(chunk({ role: 'assistant', content: '' }));
    response.write(chunk({ content: 'one ' }) + chunk({ content: 'two ' }));
    response.write(chunk({ tool_calls: [call] }) + chunk({ content: 'three' }));
    response.end(`${chunk({}, 'tool_calls')}data: [DONE]\n\n`);
  });

  expect(texts).toEqual(['one ', 'two ']);
  const forwarded = text.split('\n\n').filter((event) => event !== '');
  const deltas = forwarded.map((event) => JSON.parse(event.slice(6)).choices[0].delta);
  expect(deltas).toEqual([{ content: '' }, { tool_calls: [call] }, { content: 'three' }, {}]);
});

test('text of messages is taken directly until a block of another kind; all later parts follow it through the SDK', async () => {
  const events = (...list: readonly object[]) =>
    list.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  const start = (index: number, content_block: object) =>
    events({ type: 'content_block_start', index, content_block });
  const delta = (index: number, text: string) =>
    events({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } });
  const stop = (index: number) => events({ type: 'content_block_stop', index });
  const call = { type: 'tool_use', id: 'a', name: 'echo', input: {} };
  const { texts, text } = await exchangeWith((response) => {
    response.write(events({ type: 'message_start', message: {} }) + start(0, { type: 'text' }));
    response.write(delta(0, '') + delta(0, 'one ') + delta(0, 'two ') + stop(0));
    response.write(start(1, { type: 'unknown' }) + delta(1, 'skipped') + stop(1));
    response.write(start(2, call) + stop(2));
    response.write(start(3, { type: 'text' }) + delta(3, 'three') + stop(3));
    response.end(events({ type: 'message_stop' }));
  }, 'messages');

  expect(texts).toEqual(['one ', 'two ']);
  const forwarded = text.split('\n\n').filter((event) => event !== '');
  const kinds = forwarded.map((event) => {
    const { type, content_block, delta: part } = JSON.parse(event.slice(6));
    return content_block?.type ?? part?.text ?? type;
  });
  expect(kinds).toEqual([
    ...['message_start', 'text', '', 'content_block_stop', 'tool_use', 'content_block_stop'],
    ...['text', 'three', 'content_block_stop', 'message_stop'],
  ]);
});

const choices = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;

/** Sends the pieces, then the last of them again and again until the client leaves. */
function repeating(...pieces: readonly string[]) {
  return (response: ServerResponse) => {
    for (const piece of pieces) response.write(piece);
    const timer = setInterval(() => response.write(pieces.at(-1)), 5);
    response.once('close', () => clearInterval(timer));
  };
}

describe('an exchange in which nothing but keep-alives arrives', () => {
  const limits = { firstTokenMs: 10_000, betweenMs: 10_000, keepAliveMs: 10_000 };
  const ping = 'data: {"type":"ping"}\n\n';
  const begun = `data: {"type":"message_start","message":{}}\n\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}\n\n`;
  const emptyDelta = `data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":""}}\n\n`;

  test.each<[string, Protocol, string[]]>([
    ['comments', 'chat', [': OPENROUTER PROCESSING\n\n']],
    ['blanks', 'chat', [' ']],
    ['chunks with the role alone', 'chat', [choices({ role: 'assistant', content: '' })]],
    ['comments within the answer', 'chat', [choices({ content: 'Some' }), ': still here\n\n']],
    ['pings', 'messages', [ping]],
    ['pings while it thinks', 'messages', [begun, ping]],
    ['deltas without text', 'messages', [begun, emptyDelta]],
  ])('ends after its bound: %s', async (_, protocol, pieces) => {
    // The silence is never as long as these limits.
    const brief = { ...limits, firstTokenMs: 200, keepAliveMs: 300 };
    const { fault, closed } = await exchangeWith(repeating(...pieces), protocol, brief);

    expect(fault).toEqual({ kind: 'stalled', ms: 300 });
    await closed;
  });

  test.each<[string, Protocol, string]>([
    ['a comment', 'chat', ': OPENROUTER PROCESSING\n\n'],
    ['a ping', 'messages', ping],
  ])('has no first byte: %s', async (_, protocol, piece) => {
    const { fault } = await exchangeWith(repeating(piece), protocol, {
      ...limits,
      firstByteMs: 200,
    });

    expect(fault).toEqual({ kind: 'silent', ms: 200 });
  });

  test('goes on after pings within the bound, however often the model thinks so long', async () => {
    const thought = `data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}\n\n`;
    const rest =
      'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}\n\ndata: {"type":"message_stop"}\n\n';
    const { fault, text } = await exchangeWith(
      (response) => {
        response.write(begun);
        let pings = 0;
        // 60 pings and 6 thoughts: together they take longer than the bound.
        const timer = setInterval(() => {
          pings += 1;
          response.write(pings % 10 === 0 ? thought : ping);
          if (pings < 60) return;
          clearInterval(timer);
          response.end(rest);
        }, 40);
      },
      'messages',
      { ...limits, firstTokenMs: 200, keepAliveMs: 2_000 },
    );

    expect(fault).toBeNull();
    expect(text).toContain('message_stop');
  });

  test('after the end of the answer does not wait for its usage for ever', async () => {
    const answer = choices({ content: 'Hi.' }) + choices({}, 'stop');
    const kept = repeating(answer, ': still here\n\n');
    const { fault } = await exchangeWith(kept, 'chat', limits, { ...bounds, stream: 1_000_000 });

    expect(fault).toEqual({ kind: 'stalled', ms: 5_000 });
  });
});

test('the body of an error that drips is given up, and its status is reported', async () => {
  const { fault, closed } = await exchangeWith((response) => {
    response.writeHead(400);
    repeating('no. ')(response);
  });

  expect(fault).toMatchObject({ kind: 'status', status: 400 });
  await closed;
});
