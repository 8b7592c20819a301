/**
 * The one HTTP exchange of a call, beneath the SDK. A fault (an abort, silence, a broken connection, an
 * error status, an invalid event) ends the request at once and is kept for the caller. The SDK then
 * reads a normal end of the stream, so it still delivers the text before the fault, and no promise
 * rejects later.
 */
import { lazily } from '../kernel/lazy.ts';
import { type BodyBytesMax, type BodyTransform, createBodyTransform } from './body-transform.ts';
import { messageIn } from './error-body.ts';
import { parsed } from './json.ts';
import type { Protocol } from './providers.ts';
import { createStreamParser, type StreamParser } from './stream-parser.ts';

/** Why an exchange ended before its answer did. */
export type WireFault =
  | { readonly kind: 'aborted' }
  /** The provider sent no byte for `ms`. */
  | { readonly kind: 'silent'; readonly ms: number }
  /** `isSent` says whether the provider may have had the request. */
  | { readonly kind: 'lost'; readonly detail: string; readonly isSent: boolean }
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers: Headers;
      readonly message: string;
    }
  /** The SDK cannot make a request of the call. */
  | { readonly kind: 'impossible'; readonly detail: string }
  /** The answer violates the protocol. */
  | { readonly kind: 'malformed'; readonly detail: string }
  /** The provider reports an error within its answer. */
  | { readonly kind: 'failed'; readonly message: string }
  /** The answer exceeds a bound. */
  | { readonly kind: 'excessive'; readonly detail: string };

export interface Wire {
  /** For the SDK, which calls it once. */
  readonly fetch: typeof globalThis.fetch;
  readonly parser: StreamParser;
  /** The first fault. */
  fault(): WireFault | null;
  /** Whether a request was begun. */
  isBegun(): boolean;
  /** Ends the exchange with a fault that the reader of the stream found. */
  fail(fault: WireFault): void;
  /** Ends the exchange and releases its resources. */
  close(): void;
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** Of a response body. */
const bodyBytesMax: BodyBytesMax = { stream: 256 * 1024 * 1024, document: 32 * 1024 * 1024 };
/** Of the body of an error response. */
const errorCharactersMax = 64 * 1024;
/** How long the body of a finished answer may take to end, so that its connection can be reused. */
const drainMs = 1_000;
/** How long the usage may follow the stop reason of an answer. */
const usageMs = 5_000;
/** Codes of connections that failed before the request was sent: DNS, refusal, TLS. */
const unsent =
  /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOST|ENET|UND_ERR_CONNECT)|^(ERR_TLS|ERR_SSL|UNABLE_TO_)|CERT/;

/** How long a provider may send nothing, in milliseconds. */
export interface SilenceLimits {
  /** Before the first part of the answer: a long prompt takes time. */
  readonly firstTokenMs: number;
  /** Between two parts of an answer. */
  readonly betweenMs: number;
}

/** The timer below bounds silence. undici's own time limits of five minutes would be too short. */
const dispatcher = lazily(async () => {
  const { Agent } = await import('undici');
  return new Agent({ headersTimeout: 0, bodyTimeout: 0 });
});

/** Opens the exchange of one call; a longer silence than `silence` allows is a fault. */
export function openWire(parts: {
  protocol: Protocol;
  signal: AbortSignal;
  silence: SilenceLimits;
  bounds?: BodyBytesMax;
}): Wire {
  const { protocol, signal, silence, bounds = bodyBytesMax } = parts;
  const parser = createStreamParser(protocol);
  const request = new AbortController();
  let first: WireFault | null = null;
  let isBegun = false;
  let isDraining = false;

  function fail(fault: WireFault): void {
    if (first !== null) return;
    first = fault;
    request.abort();
  }

  const onAbort = () => fail({ kind: 'aborted' });
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  const silenceTimer = startSilenceTimer(silenceLimit, (ms) => fail({ kind: 'silent', ms }));

  function silenceLimit(): number {
    if (parser.isFinished()) return Math.min(usageMs, silence.betweenMs);
    return parser.isBegun() ? silence.betweenMs : silence.firstTokenMs;
  }

  async function send(url: string | URL | Request, init?: RequestInit): Promise<Response> {
    isBegun = first === null;
    let response: Response;
    try {
      response = await fetch(url, {
        ...init,
        redirect: 'manual',
        signal: request.signal,
        // The types of undici's release differ from those of the global fetch; the interface is the same.
        dispatcher: (await dispatcher()) as unknown as NonNullable<RequestInit['dispatcher']>,
      });
    } catch (error) {
      fail(connectionFault(error));
      throw error;
    }
    silenceTimer.reset();
    if (!response.ok) {
      const message = await errorMessageOf(response, silenceTimer.reset);
      fail({ kind: 'status', status: response.status, headers: response.headers, message });
      request.abort();
      throw new Error(`status ${response.status}`);
    }
    const { status, headers } = response;
    const transform = createBodyTransform({ protocol, parser, headers, bounds, fail });
    const body = response.body === null ? null : transformedBody(response.body, transform);
    return new Response(body, { status, headers });
  }

  function transformedBody(
    body: ReadableStream<Uint8Array>,
    transform: BodyTransform,
  ): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        while (first === null) {
          const { done, value } = await readOrFail(reader);
          const bytes = transform.transform(done ? null : value);
          silenceTimer.reset();
          if (bytes.length > 0) controller.enqueue(bytes);
          if (done || transform.isOver()) break;
          if (bytes.length > 0) return;
        }
        controller.close();
        if (first === null) drainBody(reader);
      },
      cancel: () => request.abort(),
    });
  }

  async function readOrFail(reader: Reader): ReturnType<Reader['read']> {
    try {
      return await reader.read();
    } catch (error) {
      fail(connectionFault(error));
      return { done: true, value: undefined };
    }
  }

  /** Reads the body to its end, because only then its connection can be reused. */
  function drainBody(reader: Reader): void {
    isDraining = true;
    const deadline = setTimeout(() => request.abort(), drainMs).unref();
    const drain = async () => {
      while (!(await reader.read()).done);
    };
    drain()
      .catch(() => {})
      .finally(() => clearTimeout(deadline));
  }

  return {
    fetch: send,
    parser,
    fault: () => first,
    isBegun: () => isBegun,
    fail,
    close() {
      signal.removeEventListener('abort', onAbort);
      silenceTimer.stop();
      if (!isDraining) request.abort();
    },
  };
}

function connectionFault(error: unknown): WireFault {
  const causes: string[] = [];
  for (let cause = error; cause instanceof Error && causes.length < 5; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (typeof code === 'string') causes.push(code);
  }
  const detail = causes.at(-1) ?? (error instanceof Error ? error.message : String(error));
  return { kind: 'lost', detail, isSent: !causes.some((code) => unsent.test(code)) };
}

/** The message in the body of an error response; empty where there is none. */
async function errorMessageOf(response: Response, onBytes: () => void): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of response.body ?? []) {
      onBytes();
      text += decoder.decode(bytes, { stream: true });
      if (text.length > errorCharactersMax) break;
    }
  } catch {
    // The status alone is reported.
  }
  const body = parsed(text);
  return typeof body === 'object' && body !== null ? messageIn(body) : text;
}

/**
 * Calls `onSilence` when `reset` was not called for as long as `limit` says. Bytes that have arrived are
 * read first: this process may have been too busy to read them in time.
 */
function startSilenceTimer(limit: () => number, onSilence: (ms: number) => void) {
  let resets = 0;
  let ms = limit();
  const onTimeout = () => {
    const before = resets;
    setImmediate(() => {
      if (before === resets) onSilence(ms);
    });
  };
  let timer = setTimeout(onTimeout, ms);
  return {
    reset() {
      resets += 1;
      const now = limit();
      if (now === ms) return void timer.refresh();
      ms = now;
      clearTimeout(timer);
      timer = setTimeout(onTimeout, ms);
    },
    stop: () => clearTimeout(timer),
  };
}
