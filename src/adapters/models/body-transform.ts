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
import { createEventDataReader, type EventDataReader } from './event-data.ts';
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

export interface BodyTransform {
  /** The bytes for the SDK in the place of these; null ends the body. */
  transform(value: Uint8Array | null): Uint8Array;
  /** Whether the rest of the body need not be read. */
  isOver(): boolean;
  /** What has arrived so far, comments and blanks before it left out. */
  arrived(): Readonly<Arrived>;
}

export interface Arrived {
  /** Whether the answer has begun, with any event but a ping, or with a document. */
  isBegun: boolean;
  /** Events with a part of the answer, and chunks of a document. */
  parts: number;
}

export interface BodyTransformDeps {
  readonly protocol: Protocol;
  readonly parser: StreamParser;
  readonly response: { readonly headers: Headers; readonly bounds: BodyBytesMax };
  /** Takes text of the answer that does not pass through the SDK. Throws an ExcessError. */
  onText(text: string): void;
  /** Takes a fault of the body. */
  fail(fault: WireFault): void;
}

interface State extends BodyTransformDeps {
  readonly decoder: TextDecoder;
  readonly events: EventDataReader;
  /** The chunks of a document; null when the body is a stream of events. */
  document: string[] | null;
  isBegun: boolean;
  readonly arrived: Arrived;
  /** Whether any event was forwarded. */
  isForwarded: boolean;
  bytes: number;
  isOver: boolean;
}

const encoder = new TextEncoder();
const nothing = new Uint8Array();

export function createBodyTransform(deps: BodyTransformDeps): BodyTransform {
  const state: State = {
    ...deps,
    decoder: new TextDecoder(),
    events: createEventDataReader(),
    document: null,
    isBegun: false,
    arrived: { isBegun: false, parts: 0 },
    isForwarded: false,
    bytes: 0,
    isOver: false,
  };
  return {
    transform: (value) => transform(state, value),
    isOver: () => state.isOver,
    arrived: () => state.arrived,
  };
}

function transform(state: State, value: Uint8Array | null): Uint8Array {
  const forwarded = forward(state, value);
  const { bounds } = state.response;
  state.bytes += value?.byteLength ?? 0;
  const max = state.document === null ? bounds.stream : bounds.document;
  if (state.bytes > max) fail(state, { kind: 'excessive', detail: `${max} bytes` });
  return forwarded === '' ? nothing : encoder.encode(forwarded);
}

function forward(state: State, value: Uint8Array | null): string {
  try {
    return value === null ? end(state) : take(state, state.decoder.decode(value, { stream: true }));
  } catch (error) {
    const kind = error instanceof ExcessError ? 'excessive' : 'malformed';
    return fail(state, { kind, detail: (error as Error).message });
  }
}

function take(state: State, text: string): string {
  const begin = state.isBegun ? '' : text.trimStart();
  if (begin !== '') {
    state.isBegun = true;
    if (begin.startsWith('{')) state.document = [];
  }
  if (state.document === null) {
    return state.events
      .push(text)
      .map((data) => forwardData(state, data))
      .join('');
  }
  state.arrived.isBegun = true;
  state.arrived.parts += 1;
  state.document.push(text);
  return '';
}

function end(state: State): string {
  const { document, parser, events } = state;
  const rest = document === null ? events.rest() : null;
  const data = rest === null ? '' : forwardData(state, rest);
  const forwarded = document === null ? data : forwardDocument(state, document.join(''));
  // Some servers close the connection after the stop reason, without the event that ends the stream.
  return parser.state.isOver || !parser.state.isFinished
    ? forwarded
    : forwarded + encodeEvents(state, parser.end());
}

function forwardData(state: State, data: string): string {
  if (state.isOver) return '';
  if (data.trim() === '[DONE]') {
    state.isOver = true;
    return encodeEvents(state, state.parser.end());
  }
  const event = parsed(data);
  if (event !== undefined) return forwardEvent(state, event);
  return fail(state, { kind: 'malformed', detail: 'an event is not JSON' });
}

function forwardDocument(state: State, text: string): string {
  const whole = objectOf(parsed(text));
  if (whole === null) return fail(state, { kind: 'malformed', detail: 'it is not JSON' });
  let forwarded = '';
  for (const event of eventsOf(state.protocol, whole)) {
    forwarded += state.isOver ? '' : forwardEvent(state, event);
  }
  return forwarded;
}

function forwardEvent(state: State, event: unknown): string {
  const { parser, arrived } = state;
  arrived.isBegun ||= !isPing(event);
  if (!isKeepAlive(event)) arrived.parts += 1;
  const parsedEvent = parser.parse(event);
  if ('error' in parsedEvent) return fail(state, faultOf(state, parsedEvent.error, event));
  state.isOver = parser.state.isOver;
  if ('text' in parsedEvent) {
    state.isForwarded = true;
    state.onText(parsedEvent.text);
    return '';
  }
  return encodeEvents(state, parsedEvent.events);
}

function encodeEvents(state: State, events: readonly Json[]): string {
  if (events.length > 0) state.isForwarded = true;
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
}

/** An error event before any part of the answer is treated as the HTTP status that it names. */
function faultOf(
  { isForwarded, response: { headers } }: State,
  message: string,
  event: unknown,
): WireFault {
  const status = isForwarded ? null : statusIn(objectOf(event) ?? {});
  if (status === null) return { kind: 'failed', message };
  return { kind: 'status', status, headers, message };
}

function fail(state: State, fault: WireFault): string {
  state.isOver = true;
  state.fail(fault);
  return '';
}
