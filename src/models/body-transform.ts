/**
 * Transforms the body of a provider's response into the event stream that the SDK reads: bounded, and
 * parsed on the way. Some servers and gateways answer with one JSON document although a stream was
 * asked for. Such a document is recognized by its first character, because its content type is not
 * reliable.
 */
import { eventsOf } from './document.ts';
import { statusIn } from './error-body.ts';
import { createEventDataReader } from './event-data.ts';
import { type Json, objectOf, parsed } from './json.ts';
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
}

/** `headers` are the response's. A fault of the body is reported to `fail`. */
export function createBodyTransform(parts: {
  protocol: Protocol;
  parser: StreamParser;
  headers: Headers;
  bounds: BodyBytesMax;
  fail(fault: WireFault): void;
}): BodyTransform {
  const { protocol, parser, headers, bounds } = parts;
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const events = createEventDataReader();
  /** The chunks of a document; null when the body is a stream of events. */
  let document: string[] | null = null;
  let isBegun = false;
  /** Whether the SDK was given any event. */
  let isForwarded = false;
  let bytes = 0;
  let isOver = false;

  function fail(fault: WireFault): string {
    isOver = true;
    parts.fail(fault);
    return '';
  }

  /** An error event before any part of the answer is treated as the HTTP status that it names. */
  function faultOf(message: string, event: unknown): WireFault {
    const status = isForwarded ? null : statusIn(objectOf(event) ?? {});
    if (status === null) return { kind: 'failed', message };
    return { kind: 'status', status, headers, message };
  }

  function encodeEvents(events: readonly Json[]): string {
    if (events.length > 0) isForwarded = true;
    return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  }

  function forwardEvent(event: unknown): string {
    const parsedEvent = parser.parse(event);
    if ('error' in parsedEvent) return fail(faultOf(parsedEvent.error, event));
    isOver = parser.isOver();
    return encodeEvents(parsedEvent.events);
  }

  function forwardData(data: string): string {
    if (isOver) return '';
    if (data.trim() === '[DONE]') {
      isOver = true;
      return encodeEvents(parser.end());
    }
    const event = parsed(data);
    if (event !== undefined) return forwardEvent(event);
    return fail({ kind: 'malformed', detail: 'an event is not JSON' });
  }

  function forwardDocument(text: string): string {
    const whole = objectOf(parsed(text));
    if (whole === null) return fail({ kind: 'malformed', detail: 'it is not JSON' });
    let forwarded = '';
    for (const event of eventsOf(protocol, whole)) forwarded += isOver ? '' : forwardEvent(event);
    return forwarded;
  }

  function take(text: string): string {
    const begin = isBegun ? '' : text.trimStart();
    if (begin !== '') {
      isBegun = true;
      if (begin.startsWith('{')) document = [];
    }
    if (document === null) return events.push(text).map(forwardData).join('');
    document.push(text);
    return '';
  }

  function end(): string {
    const rest = document === null ? events.rest() : null;
    const forwarded =
      document !== null
        ? forwardDocument(document.join(''))
        : rest === null
          ? ''
          : forwardData(rest);
    // Some servers close the connection after the stop reason, without the event that ends the stream.
    return parser.isOver() || !parser.isFinished()
      ? forwarded
      : forwarded + encodeEvents(parser.end());
  }

  function forward(value: Uint8Array | null): string {
    try {
      return value === null ? end() : take(decoder.decode(value, { stream: true }));
    } catch (error) {
      return fail({ kind: 'malformed', detail: (error as Error).message });
    }
  }

  return {
    transform(value) {
      const forwarded = forward(value);
      bytes += value?.byteLength ?? 0;
      const max = document === null ? bounds.stream : bounds.document;
      if (bytes > max) fail({ kind: 'excessive', detail: `${max} bytes` });
      return encoder.encode(forwarded);
    },
    isOver: () => isOver,
  };
}
