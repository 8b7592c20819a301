/**
 * Reads the body of a provider's response, bounded, and hands its events to the protocol. Some servers and gateways
 * answer with one JSON document although a stream was asked for. Such a document is recognized by its first character,
 * because its content type is not reliable.
 */
import { type Json, objectOf, parsed } from '../../kernel/json.ts';
import { type AnswerSoFar, ExcessError } from './answer.ts';
import { kindIn, retryDelayIn, statusIn } from './error-body.ts';
import { EventDataReader } from './event-data.ts';
import { EventFrameReader, eventFrameType } from './event-frames.ts';
import { passingStatuses } from './failure.ts';
import { hasPiece, isPing } from './keep-alive.ts';
import { type AnswerReader, type AnswerState, type Protocol, ProtocolError } from './protocol.ts';
import type { WireFault } from './wire.ts';

/** The most bytes that a response body may have. */
export interface BodyBytesMax {
  /** Of a stream, framing included. */
  readonly stream: number;
  /** Of one document, which is buffered until it is complete. */
  readonly document: number;
}

/** What an exchange fills with its answer. */
export interface AnswerSink {
  readonly protocol: Protocol;
  readonly reader: AnswerReader;
  readonly answer: AnswerSoFar;
}

export class BodyReader {
  readonly #sink: AnswerSink;
  readonly #headers: Headers;
  readonly #bounds: BodyBytesMax;
  readonly #onFault: (fault: WireFault) => void;
  readonly #decoder = new TextDecoder();
  readonly #events = new EventDataReader();
  /** Null for a body of text. */
  readonly #frames: EventFrameReader | null;
  /** The chunks of a document; null when the body is a stream of events. */
  #document: string[] | null = null;
  #hasText = false;
  /** The first characters of a text. */
  #begin = '';
  #isBegun = false;
  #parts = 0;
  #bytes = 0;
  #isOver = false;

  constructor(
    sink: AnswerSink,
    response: { readonly headers: Headers; readonly bounds: BodyBytesMax },
    onFault: (fault: WireFault) => void,
  ) {
    this.#sink = sink;
    this.#headers = response.headers;
    const isFramed = response.headers.get('content-type')?.startsWith(eventFrameType) === true;
    this.#frames = isFramed ? new EventFrameReader() : null;
    this.#bounds = response.bounds;
    this.#onFault = onFault;
  }

  /** Whether the rest of the body need not be read. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the answer has begun, with any event but a ping, or with a document. */
  get isBegun(): boolean {
    return this.#isBegun;
  }

  /** Events with a part of the answer, and chunks of a document. */
  get parts(): number {
    return this.#parts;
  }

  /** Reads the next bytes; null ends the body. */
  read(value: Uint8Array | null): void {
    try {
      if (this.#frames !== null) this.#takeFrames(this.#frames, value);
      else if (value === null) this.#end();
      else this.#take(this.#decoder.decode(value, { stream: true }));
    } catch (error) {
      const kind = error instanceof ExcessError ? 'excessive' : 'malformed';
      this.#fail({ kind, detail: (error as Error).message });
    }
    this.#bytes += value?.byteLength ?? 0;
    const max = this.#document === null ? this.#bounds.stream : this.#bounds.document;
    if (this.#bytes > max) this.#fail({ kind: 'excessive', detail: `${max} bytes` });
  }

  #takeFrames(frames: EventFrameReader, value: Uint8Array | null): void {
    if (value === null) {
      frames.end();
      return;
    }
    frames.push(value, (event) => {
      if (!this.#isOver) this.#takeEvent(event);
    });
  }

  #take(text: string): void {
    this.#begin += text.slice(0, quotedMax - this.#begin.length);
    if (!this.#hasText) {
      const begin = text.trimStart();
      this.#hasText = begin !== '';
      if (begin.startsWith('{')) this.#document = [];
    }
    if (this.#document === null) {
      for (const data of this.#events.push(text)) this.#takeData(data);
      return;
    }
    this.#isBegun = true;
    this.#parts += 1;
    this.#document.push(text);
  }

  #end(): void {
    if (this.#document === null) {
      const rest = this.#events.rest();
      if (rest !== null) this.#takeData(rest);
    } else this.#takeDocument(this.#document.join(''));
    this.#checkEmpty();
  }

  #takeData(data: string): void {
    if (this.#isOver) return;
    if (data.trim() === '[DONE]') {
      this.#isOver = true;
      this.#sink.reader.end();
      return;
    }
    const event = parsed(data);
    if (event === undefined) throw new ProtocolError('an event is not JSON');
    this.#takeEvent(event);
  }

  #takeDocument(text: string): void {
    const whole = objectOf(parsed(text));
    if (whole === null) throw new ProtocolError('it is not JSON');
    for (const event of this.#sink.protocol.eventsOf(whole)) {
      if (!this.#isOver) this.#takeEvent(event);
    }
  }

  #takeEvent(value: unknown): void {
    const event = objectOf(value);
    if (event === null) throw new ProtocolError('an event that is no object');
    const { reader, answer } = this.#sink;
    this.#isBegun ||= !isPing(event);
    const before = { ...reader.state, parts: answer.parts };
    const message = reader.take(event);
    if (answer.parts > before.parts || hasPiece(event) || isAhead(reader.state, before)) {
      this.#parts += 1;
    }
    if (message === null) this.#isOver = reader.state.isOver;
    else this.#fail(this.#faultOf(message, event, hasAnswer(before)));
  }

  /**
   * An error event before any part of the answer is treated as the HTTP status that it names, and after one where it
   * refuses the call for good.
   */
  #faultOf(message: string, event: Json, isWithin: boolean): WireFault {
    const status = statusIn(event) ?? unknownError;
    const isRefused = status < 500 && !passingStatuses.has(status);
    if (isWithin && !isRefused) return { kind: 'failed', message };
    const errorKind = kindIn(event);
    const retryDelay = retryDelayIn(event);
    return { kind: 'status', status, headers: this.#headers, message, errorKind, retryDelay };
  }

  /** The body has ended in order. Without any part of the answer it says what there was instead, if anything. */
  #checkEmpty(): void {
    const { reader, answer } = this.#sink;
    if (this.#isOver || reader.state.ending !== null) return;
    if (hasAnswer({ ...reader.state, parts: answer.parts })) return;
    const begin = this.#begin.trimStart();
    this.#fail(
      begin === '' || streamBegin.test(begin)
        ? { kind: 'lost', detail: 'it ended before its answer began', isSent: true }
        : { kind: 'malformed', detail: `it is ${begin}` },
    );
  }

  #fail(fault: WireFault): void {
    this.#isOver = true;
    this.#onFault(fault);
  }
}

/** Of an error of an unknown kind. */
const unknownError = 500;
/** Characters of a body that are quoted. */
const quotedMax = 300;
/** How a stream of events begins. */
const streamBegin = /^(:|data|event|id|retry)/;

/** Whether any part of the answer has come, or its end. */
function hasAnswer({ reasoning, ending, parts }: AnswerState & { readonly parts: number }) {
  return parts > 0 || reasoning !== null || ending !== null;
}

/** Whether the events say more than before about the call. */
function isAhead(now: AnswerState, before: AnswerState): boolean {
  return (
    now.isBegun !== before.isBegun ||
    now.ending !== before.ending ||
    now.reasoning?.text !== before.reasoning?.text ||
    now.usage.prompt !== before.usage.prompt ||
    now.usage.completion !== before.usage.completion
  );
}
