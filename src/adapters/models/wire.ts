/**
 * The one HTTP exchange of a call. A fault (an abort, silence, a broken connection, an error status, an invalid event)
 * ends the request at once and is kept for the caller, and no promise rejects later.
 */

import type { Readable } from 'node:stream';
import { parsed } from '../../kernel/json.ts';
import { type AnswerSink, type BodyBytesMax, BodyReader } from './body-reader.ts';
import { kindIn, messageIn, retryDelayIn } from './error-body.ts';
import type { AnswerState } from './protocol.ts';
import {
  type ProviderRequest,
  type ProviderResponse,
  requestProvider,
} from './provider-request.ts';
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
      /** Code, type and parameter of the error, as the provider names them; empty without any. */
      readonly errorKind: string;
      /** The delay that the error names, such as Google's `7s`; empty without any. */
      readonly retryDelay: string;
    }
  /** No request can be made of the call. */
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
  readonly sink: AnswerSink;
  readonly signal: AbortSignal;
  readonly limits: TimeLimits;
  readonly bounds?: BodyBytesMax;
}

/** The exchange of one call. */
export class Wire {
  readonly #sink: AnswerSink;
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
  constructor({ sink, signal, limits, bounds = bodyBytesMax }: WireOptions) {
    const silence = silenceWithin(limits);
    const { state } = sink.reader;
    this.#sink = sink;
    this.#bounds = bounds;
    this.#signal = signal;
    this.#silenceTimer = new SilenceTimer(
      () => silenceLimit(state, silence),
      (ms) => this.fail({ kind: 'silent', ms }),
    );
    this.#stallTimer = new SilenceTimer(
      () => (state.ending === null ? silence.keepAliveMs : usageMs),
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

  /** Ends the exchange with a fault. */
  fail(fault: WireFault): void {
    if (this.#fault !== null) return;
    this.#fault = fault;
    this.#request.abort();
  }

  /** Makes the exchange. Resolves at its end, also at a fault; called once. */
  async exchange(request: ProviderRequest): Promise<void> {
    if (this.#fault !== null) return;
    this.#isBegun = true;
    let response: ProviderResponse;
    try {
      response = await requestProvider(request, this.#request.signal);
    } catch (error) {
      this.fail(connectionFault(error));
      return;
    }
    this.#silenceTimer.reset();
    const { status, headers, body } = response;
    if (status >= 200 && status <= 299) {
      await this.#readBody(body, headers);
      return;
    }
    const error = await this.#errorIn(body);
    this.fail({ kind: 'status', status, headers, ...error });
  }

  /** Resolves when the answer is over, or failed. */
  #readBody(body: Readable, headers: Headers): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const onFault = (fault: WireFault) => this.fail(fault);
    const reader = new BodyReader(this.#sink, { headers, bounds: this.#bounds }, onFault);
    let isOver = false;
    const take = (value: Uint8Array | null) => {
      if (isOver) return;
      // After a fault the body ends with an error, which comes as null: what has arrived may be whole.
      if (this.#fault === null || value === null) this.#readBytes(reader, value);
      isOver = value === null || this.#fault !== null || reader.isOver;
      if (!isOver) {
        if ((value?.length ?? 0) >= floodBytes) letOthersRun(body);
        return;
      }
      if (this.#fault === null) this.#drainBody(body);
      resolve();
    };
    body.on('data', take);
    body.on('end', () => take(null));
    body.on('error', (error) => {
      if (!isOver) this.fail(connectionFault(error));
      take(null);
    });
    return promise;
  }

  #readBytes(reader: BodyReader, value: Uint8Array | null): void {
    const { parts } = reader;
    reader.read(value);
    if (value !== null) this.#silenceTimer.reset();
    if (reader.isBegun) this.#deadlines.begun();
    if (reader.parts > parts) this.#stallTimer.reset();
  }

  /** Reads the body to its end, because only then its connection can be reused. */
  #drainBody(body: Readable): void {
    this.#isDraining = true;
    const deadline = setTimeout(() => this.#request.abort(), drainMs).unref();
    body.once('close', () => clearTimeout(deadline)).resume();
  }

  /** What the body of an error response says; empty where it says nothing. */
  async #errorIn(
    chunks: AsyncIterable<Uint8Array>,
  ): Promise<Pick<Extract<WireFault, { kind: 'status' }>, 'message' | 'errorKind' | 'retryDelay'>> {
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
    const hasForm = typeof body === 'object' && body !== null;
    const message = hasForm ? messageIn(body) : text;
    return { message, errorKind: kindIn(body), retryDelay: retryDelayIn(body) };
  }
}

/** A provider that may take longer for its first byte may also take longer for its first token. */
function silenceWithin(limits: TimeLimits): SilenceLimits {
  const { betweenMs, firstByteMs = 0 } = limits;
  const firstTokenMs = Math.max(limits.firstTokenMs, firstByteMs);
  return { firstTokenMs, betweenMs, keepAliveMs: Math.max(limits.keepAliveMs, firstTokenMs) };
}

/** The socket has more at once: other work would have no turn before all of it is read. */
function letOthersRun(body: Readable): void {
  body.pause();
  setImmediate(() => body.resume());
}

function silenceLimit(state: AnswerState, silence: SilenceLimits): number {
  if (state.ending !== null) return Math.min(usageMs, silence.betweenMs);
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
