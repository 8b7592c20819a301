/**
 * The one HTTP exchange of a call, beneath the SDK. A fault (an abort, silence, a broken connection, an
 * error status, an invalid event) ends the request at once and is kept for the caller. The SDK then
 * reads a normal end of the stream, so it still delivers the text before the fault, and no promise
 * rejects later.
 */

import type { Readable } from 'node:stream';
import { parsed } from '../../kernel/json.ts';
import { type BodyBytesMax, createBodyTransform } from './body-transform.ts';
import { createChatParser } from './chat-parser.ts';
import { messageIn } from './error-body.ts';
import { createMessagesParser } from './messages-parser.ts';
import { type ProviderResponse, requestProvider } from './provider-request.ts';
import type { Protocol } from './providers.ts';
import type { StreamParser } from './stream-parser.ts';
import {
  type Deadlines,
  type SilenceLimits,
  type SilenceTimer,
  startDeadlines,
  startSilenceTimer,
  type TimeLimits,
} from './wire-timers.ts';

/** Why an exchange ended before its answer did. */
export type WireFault =
  | { readonly kind: 'aborted' }
  /** The provider sent no byte for `ms`. */
  | { readonly kind: 'silent'; readonly ms: number }
  /** The provider sent keep-alives alone for `ms`. */
  | { readonly kind: 'stalled'; readonly ms: number }
  /** The answer was not whole after `ms`. */
  | { readonly kind: 'late'; readonly ms: number }
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

/** Of a response body. */
const bodyBytesMax: BodyBytesMax = { stream: 256 * 1024 * 1024, document: 32 * 1024 * 1024 };
/** Of the body of an error response. */
const errorCharactersMax = 64 * 1024;
/** How long the body of an error response may take. */
const errorBodyMs = 5_000;
/** How long the body of a finished answer may take to end, so that its connection can be reused. */
const drainMs = 1_000;
/** How long the usage may follow the stop reason of an answer. */
const usageMs = 5_000;
/** Bytes that arrive together where a provider sends more than a model writes. */
const floodBytes = 16 * 1024;
/** Codes of connections that failed before the request was sent: DNS, refusal, TLS. */
const unsent =
  /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOST|ENET|UND_ERR_CONNECT)|^(ERR_TLS|ERR_SSL|UNABLE_TO_)|CERT/;

interface State extends Pick<WireOptions, 'protocol' | 'onText'> {
  readonly parser: StreamParser;
  readonly bounds: BodyBytesMax;
  readonly request: AbortController;
  readonly silenceTimer: SilenceTimer;
  /** Reset by parts of the answer, not by keep-alives. */
  readonly stallTimer: SilenceTimer;
  readonly deadlines: Deadlines;
  /** The first fault. */
  fault: WireFault | null;
  isBegun: boolean;
  isDraining: boolean;
}

export interface WireOptions {
  readonly protocol: Protocol;
  readonly signal: AbortSignal;
  readonly limits: TimeLimits;
  readonly bounds?: BodyBytesMax;
  /**
   * Takes text of the answer before anything of the answer has reached the SDK. Most parts of an answer
   * are such text, and the SDK's chain of streams takes longer for each than everything else.
   */
  onText(text: string): void;
}

/** Opens the exchange of one call; taking longer than `limits` allow is a fault. */
export function openWire(options: WireOptions): Wire {
  const { protocol, signal, limits, bounds = bodyBytesMax } = options;
  const silence = silenceWithin(limits);
  const parser = protocol === 'chat' ? createChatParser() : createMessagesParser();
  const state: State = {
    protocol,
    onText: options.onText,
    parser,
    bounds,
    request: new AbortController(),
    silenceTimer: startSilenceTimer(
      () => silenceLimit(parser.state, silence),
      (ms) => fail(state, { kind: 'silent', ms }),
    ),
    stallTimer: startSilenceTimer(
      () => (parser.state.isFinished ? usageMs : silence.keepAliveMs),
      (ms) => fail(state, { kind: 'stalled', ms }),
    ),
    deadlines: startDeadlines(limits, (fault) => fail(state, fault)),
    fault: null,
    isBegun: false,
    isDraining: false,
  };
  const onAbort = () => fail(state, { kind: 'aborted' });
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  return {
    fetch: (url, init) => send(state, url, init),
    parser,
    fault: () => state.fault,
    isBegun: () => state.isBegun,
    fail: (fault) => fail(state, fault),
    close() {
      signal.removeEventListener('abort', onAbort);
      state.silenceTimer.stop();
      state.stallTimer.stop();
      state.deadlines.stop();
      if (!state.isDraining) state.request.abort();
    },
  };
}

/** A provider that may take longer for its first byte may also take longer for its first token. */
function silenceWithin(limits: TimeLimits): SilenceLimits {
  const { betweenMs, firstByteMs = 0 } = limits;
  const firstTokenMs = Math.max(limits.firstTokenMs, firstByteMs);
  return { firstTokenMs, betweenMs, keepAliveMs: Math.max(limits.keepAliveMs, firstTokenMs) };
}

function silenceLimit(state: StreamParser['state'], silence: SilenceLimits): number {
  if (state.isFinished) return Math.min(usageMs, silence.betweenMs);
  return state.isBegun ? silence.betweenMs : silence.firstTokenMs;
}

function fail(state: State, fault: WireFault): void {
  if (state.fault !== null) return;
  state.fault = fault;
  state.request.abort();
}

async function send(
  state: State,
  url: string | URL | Request,
  init: RequestInit = {},
): Promise<Response> {
  const { request, silenceTimer } = state;
  state.isBegun = state.fault === null;
  let response: ProviderResponse;
  try {
    response = await requestProvider(url, init, request.signal);
  } catch (error) {
    fail(state, connectionFault(error));
    throw error;
  }
  silenceTimer.reset();
  const { status, headers, body } = response;
  if (status < 200 || status > 299) {
    const message = await errorMessageOf(state, body);
    fail(state, { kind: 'status', status, headers, message });
    request.abort();
    throw new Error(`status ${status}`);
  }
  return new Response(transformedBody(state, body, headers), { headers });
}

/** The bytes for the SDK. Each chunk is transformed as it arrives, also while the SDK has not read the one before. */
function transformedBody(
  state: State,
  body: Readable,
  headers: Headers,
): ReadableStream<Uint8Array> {
  const { protocol, parser, bounds, onText } = state;
  const transform = createBodyTransform({
    protocol,
    parser,
    response: { headers, bounds },
    onText,
    fail: (fault) => fail(state, fault),
  });
  let isOver = false;
  /** Whether the next bytes may be read in this turn of the event loop. */
  let isInTurn = true;
  const take = (controller: ReadableStreamDefaultController, value: Uint8Array | null) => {
    // After a fault the body ends with an error, which comes as null.
    if (isOver || (value !== null && state.fault !== null)) return;
    const { parts } = transform.arrived();
    const bytes = transform.transform(value);
    const arrived = transform.arrived();
    if (value !== null) state.silenceTimer.reset();
    if (arrived.isBegun) state.deadlines.begun();
    if (arrived.parts > parts) state.stallTimer.reset();
    if (bytes.length > 0) controller.enqueue(bytes);
    const hasRoom = () => (controller.desiredSize ?? 0) > 0;
    if (!hasRoom()) body.pause();
    if ((value?.length ?? 0) >= floodBytes) {
      // The socket has more at once: other work would have no turn before all of it is read.
      isInTurn = false;
      body.pause();
      setImmediate(() => {
        isInTurn = true;
        if (hasRoom()) body.resume();
      });
    }
    isOver = value === null || state.fault !== null || transform.isOver();
    if (!isOver) return;
    controller.close();
    if (state.fault === null) drainBody(state, body);
  };
  return new ReadableStream<Uint8Array>({
    start(controller) {
      body.on('data', (value: Uint8Array) => take(controller, value));
      body.on('end', () => take(controller, null));
      body.on('error', (error) => {
        fail(state, connectionFault(error));
        take(controller, null);
      });
    },
    pull() {
      if (isInTurn) body.resume();
    },
    cancel() {
      isOver = true;
      state.request.abort();
    },
  });
}

/** Reads the body to its end, because only then its connection can be reused. */
function drainBody(state: State, body: Readable): void {
  state.isDraining = true;
  const deadline = setTimeout(() => state.request.abort(), drainMs).unref();
  body.once('close', () => clearTimeout(deadline)).resume();
}

/** Why a request has no response. */
export function connectionFault(error: unknown): WireFault {
  const causes: string[] = [];
  for (let cause = error; cause instanceof Error && causes.length < 5; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (typeof code === 'string') causes.push(code);
  }
  const detail = causes.at(-1) ?? (error instanceof Error ? error.message : String(error));
  return { kind: 'lost', detail, isSent: !causes.some((code) => unsent.test(code)) };
}

/** The message in the body of an error response; empty where there is none. */
async function errorMessageOf(
  { request }: Pick<State, 'request'>,
  chunks: AsyncIterable<Uint8Array>,
): Promise<string> {
  const deadline = setTimeout(() => request.abort(), errorBodyMs).unref();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of chunks) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length > errorCharactersMax) break;
    }
  } catch {
    // What has arrived is reported, the status at least.
  } finally {
    clearTimeout(deadline);
  }
  const body = parsed(text);
  return typeof body === 'object' && body !== null ? messageIn(body) : text;
}
