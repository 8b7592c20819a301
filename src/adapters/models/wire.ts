/**
 * The one HTTP exchange of a call, beneath the SDK. A fault (an abort, silence, a broken connection, an
 * error status, an invalid event) ends the request at once and is kept for the caller. The SDK then
 * reads a normal end of the stream, so it still delivers the text before the fault, and no promise
 * rejects later.
 */

import type { Readable } from 'node:stream';
import { parsed } from '../../kernel/json.ts';
import { type BodyBytesMax, BodyTransform } from './body-transform.ts';
import { ChatParser } from './chat-parser.ts';
import { messageIn } from './error-body.ts';
import { MessagesParser } from './messages-parser.ts';
import { type ProviderResponse, requestProvider } from './provider-request.ts';
import type { Protocol } from './providers.ts';
import type { StreamParser } from './stream-parser.ts';
import { Deadlines, type SilenceLimits, SilenceTimer, type TimeLimits } from './wire-timers.ts';

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

/** The exchange of one call. */
export class Wire {
  /** For the SDK, which calls it once. */
  readonly fetch: typeof globalThis.fetch = (url, init) => this.#send(url, init);
  readonly parser: StreamParser;
  readonly #protocol: Protocol;
  readonly #onText: (text: string) => void;
  readonly #bounds: BodyBytesMax;
  readonly #signal: AbortSignal;
  readonly #request = new AbortController();
  readonly #silenceTimer: SilenceTimer;
  /** Reset by parts of the answer, not by keep-alives. */
  readonly #stallTimer: SilenceTimer;
  readonly #deadlines: Deadlines;
  readonly #onAbort = (): void => this.fail({ kind: 'aborted' });
  #fault: WireFault | null = null;
  #isBegun = false;
  #isDraining = false;

  /** Taking longer than `limits` allow is a fault. */
  constructor({ protocol, signal, limits, bounds = bodyBytesMax, onText }: WireOptions) {
    const silence = silenceWithin(limits);
    const parser = protocol === 'chat' ? new ChatParser() : new MessagesParser();
    this.parser = parser;
    this.#protocol = protocol;
    this.#onText = onText;
    this.#bounds = bounds;
    this.#signal = signal;
    this.#silenceTimer = new SilenceTimer(
      () => silenceLimit(parser.state, silence),
      (ms) => this.fail({ kind: 'silent', ms }),
    );
    this.#stallTimer = new SilenceTimer(
      () => (parser.state.isFinished ? usageMs : silence.keepAliveMs),
      (ms) => this.fail({ kind: 'stalled', ms }),
    );
    this.#deadlines = new Deadlines(limits, (fault) => this.fail(fault));
    signal.addEventListener('abort', this.#onAbort, { once: true });
    if (signal.aborted) this.#onAbort();
  }

  /** The first fault. */
  get fault(): WireFault | null {
    return this.#fault;
  }

  /** Whether a request was begun. */
  get isBegun(): boolean {
    return this.#isBegun;
  }

  /** Ends the exchange and releases its resources. */
  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#silenceTimer.stop();
    this.#stallTimer.stop();
    this.#deadlines.stop();
    if (!this.#isDraining) this.#request.abort();
  }

  /** Ends the exchange with a fault, also one that the reader of the stream found. */
  fail(fault: WireFault): void {
    if (this.#fault !== null) return;
    this.#fault = fault;
    this.#request.abort();
  }

  async #send(url: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    this.#isBegun = this.#fault === null;
    let response: ProviderResponse;
    try {
      response = await requestProvider(url, init, this.#request.signal);
    } catch (error) {
      this.fail(connectionFault(error));
      throw error;
    }
    this.#silenceTimer.reset();
    const { status, headers, body } = response;
    if (status < 200 || status > 299) {
      const message = await this.#errorMessageOf(body);
      this.fail({ kind: 'status', status, headers, message });
      this.#request.abort();
      throw new Error(`status ${status}`);
    }
    return new Response(this.#transformedBody(body, headers), { headers });
  }

  /** The bytes for the SDK. Each chunk is transformed as it arrives, also while the SDK has not read the one before. */
  #transformedBody(body: Readable, headers: Headers): ReadableStream<Uint8Array> {
    const transform = new BodyTransform(
      { protocol: this.#protocol, parser: this.parser },
      { headers, bounds: this.#bounds },
      this.#onText,
      (fault) => this.fail(fault),
    );
    let isOver = false;
    /** Whether the next bytes may be read in this turn of the event loop. */
    let isInTurn = true;
    const take = (controller: ReadableStreamDefaultController, value: Uint8Array | null) => {
      // After a fault the body ends with an error, which comes as null.
      if (isOver || (value !== null && this.#fault !== null)) return;
      const { arrived } = transform;
      const { parts } = arrived;
      const bytes = transform.transform(value);
      if (value !== null) this.#silenceTimer.reset();
      if (arrived.isBegun) this.#deadlines.begun();
      if (arrived.parts > parts) this.#stallTimer.reset();
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
      isOver = value === null || this.#fault !== null || transform.isOver;
      if (!isOver) return;
      controller.close();
      if (this.#fault === null) this.#drainBody(body);
    };
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        body.on('data', (value: Uint8Array) => take(controller, value));
        body.on('end', () => take(controller, null));
        body.on('error', (error) => {
          this.fail(connectionFault(error));
          take(controller, null);
        });
      },
      pull() {
        if (isInTurn) body.resume();
      },
      cancel: () => {
        isOver = true;
        this.#request.abort();
      },
    });
  }

  /** Reads the body to its end, because only then its connection can be reused. */
  #drainBody(body: Readable): void {
    this.#isDraining = true;
    const deadline = setTimeout(() => this.#request.abort(), drainMs).unref();
    body.once('close', () => clearTimeout(deadline)).resume();
  }

  /** The message in the body of an error response; empty where there is none. */
  async #errorMessageOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
    const deadline = setTimeout(() => this.#request.abort(), errorBodyMs).unref();
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
