/**
 * Transforms the body of a provider's response into the event stream that the SDK reads: bounded, and
 * parsed on the way. Some servers and gateways answer with one JSON document although a stream was
 * asked for. Such a document is recognized by its first character, because its content type is not
 * reliable.
 */
import { type Json, objectOf, parsed } from '../../kernel/json.ts';
import { ExcessError } from './answer.ts';
import { eventsOf } from './document.ts';
import { statusIn } from './error-body.ts';
import { EventDataReader } from './event-data.ts';
import { isKeepAlive, isPing } from './keep-alive.ts';
import type { Protocol } from './providers.ts';
import type { StreamParser } from './stream-parser.ts';
import type { WireFault } from './wire.ts';

/** The most bytes that a response body may have. */
export interface BodyBytesMax {
  /** Of a stream, framing included. */
  readonly stream: number;
  /** Of one document, which is buffered until it is complete. */
  readonly document: number;
}

export interface Arrived {
  /** Whether the answer has begun, with any event but a ping, or with a document. */
  isBegun: boolean;
  /** Events with a part of the answer, and chunks of a document. */
  parts: number;
}

const encoder = new TextEncoder();
const nothing = new Uint8Array();

/** A response, and what bounds its body. */
interface BodyResponse {
  readonly headers: Headers;
  readonly bounds: BodyBytesMax;
}

export class BodyTransform {
  readonly #protocol: Protocol;
  readonly #parser: StreamParser;
  readonly #response: BodyResponse;
  readonly #onText: (text: string) => void;
  readonly #onFault: (fault: WireFault) => void;
  readonly #decoder = new TextDecoder();
  readonly #events = new EventDataReader();
  /** The chunks of a document; null when the body is a stream of events. */
  #document: string[] | null = null;
  #isBegun = false;
  readonly #arrived: Arrived = { isBegun: false, parts: 0 };
  /** Whether any event was forwarded. */
  #isForwarded = false;
  #bytes = 0;
  #isOver = false;

  /** `onText` takes text of the answer that does not pass through the SDK, and throws an ExcessError. */
  constructor(
    reader: { readonly protocol: Protocol; readonly parser: StreamParser },
    response: BodyResponse,
    onText: (text: string) => void,
    onFault: (fault: WireFault) => void,
  ) {
    this.#protocol = reader.protocol;
    this.#parser = reader.parser;
    this.#response = response;
    this.#onText = onText;
    this.#onFault = onFault;
  }

  /** Whether the rest of the body need not be read. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** What has arrived so far, comments and blanks before it left out. */
  get arrived(): Readonly<Arrived> {
    return this.#arrived;
  }

  /** The bytes for the SDK in the place of these; null ends the body. */
  transform(value: Uint8Array | null): Uint8Array {
    const forwarded = this.#forward(value);
    const { bounds } = this.#response;
    this.#bytes += value?.byteLength ?? 0;
    const max = this.#document === null ? bounds.stream : bounds.document;
    if (this.#bytes > max) this.#fail({ kind: 'excessive', detail: `${max} bytes` });
    return forwarded === '' ? nothing : encoder.encode(forwarded);
  }

  #forward(value: Uint8Array | null): string {
    try {
      return value === null
        ? this.#end()
        : this.#take(this.#decoder.decode(value, { stream: true }));
    } catch (error) {
      const kind = error instanceof ExcessError ? 'excessive' : 'malformed';
      return this.#fail({ kind, detail: (error as Error).message });
    }
  }

  #take(text: string): string {
    const begin = this.#isBegun ? '' : text.trimStart();
    if (begin !== '') {
      this.#isBegun = true;
      if (begin.startsWith('{')) this.#document = [];
    }
    if (this.#document === null) {
      return this.#events
        .push(text)
        .map((data) => this.#forwardData(data))
        .join('');
    }
    this.#arrived.isBegun = true;
    this.#arrived.parts += 1;
    this.#document.push(text);
    return '';
  }

  #end(): string {
    const rest = this.#document === null ? this.#events.rest() : null;
    const data = rest === null ? '' : this.#forwardData(rest);
    const forwarded =
      this.#document === null ? data : this.#forwardDocument(this.#document.join(''));
    // Some servers close the connection after the stop reason, without the event that ends the stream.
    return this.#parser.state.isOver || !this.#parser.state.isFinished
      ? forwarded
      : forwarded + this.#encodeEvents(this.#parser.end());
  }

  #forwardData(data: string): string {
    if (this.#isOver) return '';
    if (data.trim() === '[DONE]') {
      this.#isOver = true;
      return this.#encodeEvents(this.#parser.end());
    }
    const event = parsed(data);
    if (event !== undefined) return this.#forwardEvent(event);
    return this.#fail({ kind: 'malformed', detail: 'an event is not JSON' });
  }

  #forwardDocument(text: string): string {
    const whole = objectOf(parsed(text));
    if (whole === null) return this.#fail({ kind: 'malformed', detail: 'it is not JSON' });
    let forwarded = '';
    for (const event of eventsOf(this.#protocol, whole)) {
      forwarded += this.#isOver ? '' : this.#forwardEvent(event);
    }
    return forwarded;
  }

  #forwardEvent(event: unknown): string {
    this.#arrived.isBegun ||= !isPing(event);
    if (!isKeepAlive(event)) this.#arrived.parts += 1;
    const parsedEvent = this.#parser.parse(event);
    if ('error' in parsedEvent) return this.#fail(this.#faultOf(parsedEvent.error, event));
    this.#isOver = this.#parser.state.isOver;
    if ('text' in parsedEvent) {
      this.#isForwarded = true;
      this.#onText(parsedEvent.text);
      return '';
    }
    return this.#encodeEvents(parsedEvent.events);
  }

  #encodeEvents(events: readonly Json[]): string {
    if (events.length > 0) this.#isForwarded = true;
    return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  }

  /** An error event before any part of the answer is treated as the HTTP status that it names. */
  #faultOf(message: string, event: unknown): WireFault {
    const status = this.#isForwarded ? null : statusIn(objectOf(event) ?? {});
    if (status === null) return { kind: 'failed', message };
    return { kind: 'status', status, headers: this.#response.headers, message };
  }

  #fail(fault: WireFault): string {
    this.#isOver = true;
    this.#onFault(fault);
    return '';
  }
}
