/**
 * The one HTTP exchange of a call, beneath the SDK: it is begun, listened to and ended here. A fault
 * (an abort, silence, a broken connection, an error status, an event that makes no sense) ends the
 * request at once and is kept for the caller; what the SDK reads from then on is a stream that ends
 * in order, so that all text before the fault still arrives and nothing is left to reject later.
 */
import { lazily } from '../kernel/lazy.ts';
import { messageIn } from './error-body.ts';
import { createHearing, type Hearing } from './hearing.ts';
import { parsed } from './json.ts';
import { type AnswerBytes, createListener, type Listener } from './listener.ts';
import type { Protocol } from './providers.ts';

/** Why an exchange ended before its answer did. */
export type WireFault =
  | { readonly kind: 'aborted' }
  /** No byte for `ms`. */
  | { readonly kind: 'silent'; readonly ms: number }
  /** `isSent` says whether the provider may have had the request. */
  | { readonly kind: 'lost'; readonly detail: string; readonly isSent: boolean }
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers: Headers;
      readonly message: string;
    }
  /** The SDK does not make a request of it. */
  | { readonly kind: 'impossible'; readonly detail: string }
  /** The answer makes no sense. */
  | { readonly kind: 'malformed'; readonly detail: string }
  /** The provider says in the middle of its answer that it failed. */
  | { readonly kind: 'failed'; readonly message: string }
  /** The answer goes beyond a bound. */
  | { readonly kind: 'excessive'; readonly detail: string };

export interface Wire {
  /** For the SDK; to be called once. */
  readonly fetch: typeof globalThis.fetch;
  readonly hearing: Hearing;
  /** The first fault. */
  fault(): WireFault | null;
  /** Whether a request was begun. */
  isBegun(): boolean;
  /** Ends the exchange for a reason that only the reader knows. */
  fail(fault: WireFault): void;
  /** Lets go of everything; what is still under way is ended. */
  close(): void;
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** Of an answer on the wire. */
const wireBounds: AnswerBytes = { stream: 256 * 1024 * 1024, document: 32 * 1024 * 1024 };
/** Of the body of an error. */
const errorCharactersMax = 64 * 1024;
/** How long a finished answer's connection may take to end, to be used again. */
const endingMs = 1_000;
/** How long the counts of an answer may follow its last word. */
const countsMs = 5_000;
/** Nothing was sent when a connection fails like this: no host, nobody there, no trust. */
const unsent =
  /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOST|ENET|UND_ERR_CONNECT)|^(ERR_TLS|ERR_SSL|UNABLE_TO_)|CERT/;

/** How long a provider may send nothing, in milliseconds. */
export interface SilenceLimits {
  /** Before anything of the answer has come: a model may have much to read first. */
  readonly firstTokenMs: number;
  /** Between the pieces of an answer. */
  readonly betweenMs: number;
}

/** The silences are bounded by ours; undici's own bounds would cut them at five minutes. */
const dispatcher = lazily(async () => {
  const { Agent } = await import('undici');
  return new Agent({ headersTimeout: 0, bodyTimeout: 0 });
});

/** A longer silence than `silence` allows is a fault. */
export function openWire(parts: {
  protocol: Protocol;
  signal: AbortSignal;
  silence: SilenceLimits;
  bounds?: AnswerBytes;
}): Wire {
  const { protocol, signal, silence, bounds = wireBounds } = parts;
  const hearing = createHearing(protocol);
  const request = new AbortController();
  let first: WireFault | null = null;
  let isBegun = false;
  let isEnding = false;

  function fail(fault: WireFault): void {
    if (first !== null) return;
    first = fault;
    request.abort();
  }

  const onAbort = () => fail({ kind: 'aborted' });
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  const idle = startSilenceTimer(silenceLimit, (ms) => fail({ kind: 'silent', ms }));

  function silenceLimit(): number {
    if (hearing.isFinished()) return Math.min(countsMs, silence.betweenMs);
    return hearing.isBegun() ? silence.betweenMs : silence.firstTokenMs;
  }

  async function begin(url: string | URL | Request, init?: RequestInit): Promise<Response> {
    isBegun = first === null;
    let response: Response;
    try {
      response = await fetch(url, {
        ...init,
        redirect: 'manual',
        signal: request.signal,
        // The same interface, with types from another release than those of the global fetch.
        dispatcher: (await dispatcher()) as unknown as NonNullable<RequestInit['dispatcher']>,
      });
    } catch (error) {
      fail(lossOf(error));
      throw error;
    }
    idle.heard();
    if (!response.ok) {
      const message = await errorMessageOf(response, idle.heard);
      fail({ kind: 'status', status: response.status, headers: response.headers, message });
      request.abort();
      throw new Error(`status ${response.status}`);
    }
    const { status, headers } = response;
    const listener = createListener({ protocol, hearing, headers, bounds, fail });
    return new Response(response.body === null ? null : heardBody(response.body, listener), {
      status,
      headers,
    });
  }

  function heardBody(
    body: ReadableStream<Uint8Array>,
    listener: Listener,
  ): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        while (first === null) {
          const { done, value } = await readOrFail(reader);
          const passed = listener.pass(done ? null : value);
          idle.heard();
          if (passed.length > 0) controller.enqueue(passed);
          if (done || listener.isOver()) break;
          if (passed.length > 0) return;
        }
        controller.close();
        if (first === null) endInOrder(reader);
      },
      cancel: () => request.abort(),
    });
  }

  async function readOrFail(reader: Reader): ReturnType<Reader['read']> {
    try {
      return await reader.read();
    } catch (error) {
      fail(lossOf(error));
      return { done: true, value: undefined };
    }
  }

  /** The connection can be used again only when its body was read to the end. */
  function endInOrder(reader: Reader): void {
    isEnding = true;
    const deadline = setTimeout(() => request.abort(), endingMs).unref();
    const drain = async () => {
      while (!(await reader.read()).done);
    };
    drain()
      .catch(() => {})
      .finally(() => clearTimeout(deadline));
  }

  return {
    fetch: begin,
    hearing,
    fault: () => first,
    isBegun: () => isBegun,
    fail,
    close() {
      signal.removeEventListener('abort', onAbort);
      idle.stop();
      if (!isEnding) request.abort();
    },
  };
}

function lossOf(error: unknown): WireFault {
  const causes: string[] = [];
  for (let cause = error; cause instanceof Error && causes.length < 5; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (typeof code === 'string') causes.push(code);
  }
  const detail = causes.at(-1) ?? (error instanceof Error ? error.message : String(error));
  return { kind: 'lost', detail, isSent: !causes.some((code) => unsent.test(code)) };
}

/** What the body of an error says; empty where it says nothing. */
async function errorMessageOf(response: Response, heard: () => void): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of response.body ?? []) {
      heard();
      text += decoder.decode(bytes, { stream: true });
      if (text.length > errorCharactersMax) break;
    }
  } catch {
    // The status says enough.
  }
  const body = parsed(text);
  return typeof body === 'object' && body !== null ? messageIn(body) : text;
}

/** What lies on the connection is read before silence is believed: this process may be the late one. */
function startSilenceTimer(limit: () => number, onSilence: (ms: number) => void) {
  let last = 0;
  let ms = limit();
  const end = () => {
    const seen = last;
    setImmediate(() => {
      if (seen === last) onSilence(ms);
    });
  };
  let timer = setTimeout(end, ms);
  return {
    heard() {
      last += 1;
      const now = limit();
      if (now === ms) return void timer.refresh();
      ms = now;
      clearTimeout(timer);
      timer = setTimeout(end, ms);
    },
    stop: () => clearTimeout(timer),
  };
}
