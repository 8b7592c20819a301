/** An exchange with a provider is bounded, also with a faulty or hostile provider. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AnswerSoFar } from './answer.ts';
import { chat } from './protocols/chat.ts';
import { converse } from './protocols/converse.ts';
import { gemini } from './protocols/gemini.ts';
import { messages } from './protocols/messages.ts';
import { Wire, type WireFault } from './wire.ts';
import type { TimeLimits } from './wire-timers.ts';

const silence = { firstTokenMs: 10_000, betweenMs: 10_000, keepAliveMs: 60_000 };
const bounds = { stream: 10_000, document: 5_000 };

/** The result of an exchange with a server that answers so. */
async function exchangeWith(
  answer: (response: ServerResponse) => void,
  protocol = chat,
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
  const sink = sinkOf(protocol, (text) => texts.push(text));
  const { signal } = new AbortController();
  const wire = new Wire({ sink, signal, limits, bounds: bytesMax });
  onTestFinished(() => wire.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await wire.exchange({ url, headers: {}, body: '{}' });
  return { fault: wire.fault, texts, state: sink.reader.state, closed: closed.promise };
}

function sinkOf(protocol: typeof chat, onText: (text: string) => void) {
  const answer = new AnswerSoFar(onText);
  return { protocol, answer, reader: protocol.readerFor(answer) };
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
  await exchangeWith((response) => response.end(flood), chat, silence, limits);
  isReading = false;
  // The socket gives 64 KiB at a time.
  expect(turns).toBeGreaterThanOrEqual(bytes / 65_536);
});

test('a document that nests very deeply is refused before it is parsed', async () => {
  const deep = `{"choices":${'['.repeat(100_000)}`;
  const limits = { stream: 200_000, document: 200_000 };
  const { fault } = await exchangeWith((response) => response.end(deep), chat, silence, limits);
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
  const { fault, texts, closed } = await exchangeWith((response) => {
    response.write('data: {"choices":[{"delta":{"content":"Hi."}}]}\n\ndata: [DONE]\n\n');
  });

  expect(fault).toBeNull();
  expect(texts).toEqual(['Hi.']);
  await closed;
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

  test.each<[string, typeof chat, string[]]>([
    ['comments', chat, [': OPENROUTER PROCESSING\n\n']],
    ['blanks', chat, [' ']],
    ['chunks with the role alone', chat, [choices({ role: 'assistant', content: '' })]],
    ['comments within the answer', chat, [choices({ content: 'Some' }), ': still here\n\n']],
    ['pings', messages, [ping]],
    ['pings while it thinks', messages, [begun, ping]],
    ['deltas without text', messages, [begun, emptyDelta]],
    ['events of unknown kinds', messages, [begun, 'data: {"type":"new"}\n\n']],
    ['the same usage', chat, ['data: {"choices":[],"usage":{"prompt_tokens":5}}\n\n']],
    [
      'parts of no text',
      gemini,
      [`data: {"candidates":[{"content":{"parts":[{"text":""}]}}]}\n\n`],
    ],
    ['events without a delta', converse, ['data: {"type":"messageStart","role":"assistant"}\n\n']],
  ])('ends after its bound: %s', async (_, protocol, pieces) => {
    // The silence is never as long as these limits.
    const brief = { ...limits, firstTokenMs: 200, keepAliveMs: 300 };
    const { fault, closed } = await exchangeWith(repeating(...pieces), protocol, brief);

    expect(fault).toEqual({ kind: 'stalled', ms: 300 });
    await closed;
  });

  test.each<[string, typeof chat, string]>([
    ['a comment', chat, ': OPENROUTER PROCESSING\n\n'],
    ['a ping', messages, ping],
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
    const { fault, state } = await exchangeWith(
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
      messages,
      { ...limits, firstTokenMs: 200, keepAliveMs: 2_000 },
    );

    expect(fault).toBeNull();
    expect(state).toMatchObject({ ending: 'stop', isOver: true });
  });

  test('after the end of the answer does not wait for its usage for ever', async () => {
    const answer = choices({ content: 'Hi.' }) + choices({}, 'stop');
    const kept = repeating(answer, ': still here\n\n');
    const { fault } = await exchangeWith(kept, chat, limits, { ...bounds, stream: 1_000_000 });

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
