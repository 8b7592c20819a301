/**
 * What passes to the SDK of the bytes that a provider answers with: heard, bounded, and always as
 * events. Some servers and gateways do not stream, whatever they are asked, and answer with one JSON
 * document; it is told by how it begins, because what they call it is not to be relied on.
 */
import { eventsOf } from './document.ts';
import { statusIn } from './error-body.ts';
import { createEventDataReader } from './event-data.ts';
import type { Hearing } from './hearing.ts';
import { type Json, objectOf, parsed } from './json.ts';
import type { Protocol } from './providers.ts';
import type { WireFault } from './wire.ts';

/** Bytes of an answer. */
export interface AnswerBytes {
  /** Of a stream, events and all. */
  readonly stream: number;
  /** Of one document, which is kept until it is whole. */
  readonly document: number;
}

export interface Listener {
  /** What the SDK is to read of these bytes; null is their end. */
  pass(value: Uint8Array | null): Uint8Array;
  /** Whether nothing more is to be read. */
  isOver(): boolean;
}

/** `headers` are the answer's. What is wrong with the answer is told by `fail`. */
export function createListener(parts: {
  protocol: Protocol;
  hearing: Hearing;
  headers: Headers;
  bounds: AnswerBytes;
  fail(fault: WireFault): void;
}): Listener {
  const { protocol, hearing, headers, bounds } = parts;
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const events = createEventDataReader();
  /** The pieces of a document; null when events come. */
  let document: string[] | null = null;
  let isBegun = false;
  /** Whether the SDK was given anything. */
  let isAnswered = false;
  let bytes = 0;
  let isOver = false;

  function fail(fault: WireFault): string {
    isOver = true;
    parts.fail(fault);
    return '';
  }

  /** An error in place of an answer says what a status would have. */
  function faultOf(message: string, event: unknown): WireFault {
    const status = isAnswered ? null : statusIn(objectOf(event) ?? {});
    if (status === null) return { kind: 'failed', message };
    return { kind: 'status', status, headers, message };
  }

  function written(events: readonly Json[]): string {
    if (events.length > 0) isAnswered = true;
    return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  }

  function passedOf(event: unknown): string {
    const heard = hearing.hear(event);
    if ('error' in heard) return fail(faultOf(heard.error, event));
    isOver = hearing.isOver();
    return written(heard.events);
  }

  function passedOfData(data: string): string {
    if (isOver) return '';
    if (data.trim() === '[DONE]') {
      isOver = true;
      return written(hearing.done());
    }
    const event = parsed(data);
    if (event !== undefined) return passedOf(event);
    return fail({ kind: 'malformed', detail: 'an event is not JSON' });
  }

  function passedOfDocument(text: string): string {
    const whole = objectOf(parsed(text));
    if (whole === null) return fail({ kind: 'malformed', detail: 'it is not JSON' });
    let passed = '';
    for (const event of eventsOf(protocol, whole)) passed += isOver ? '' : passedOf(event);
    return passed;
  }

  function take(text: string): string {
    const begin = isBegun ? '' : text.trimStart();
    if (begin !== '') {
      isBegun = true;
      if (begin.startsWith('{')) document = [];
    }
    if (document === null) return events.push(text).map(passedOfData).join('');
    document.push(text);
    return '';
  }

  function end(): string {
    const rest = document === null ? events.rest() : null;
    const passed =
      document !== null
        ? passedOfDocument(document.join(''))
        : rest === null
          ? ''
          : passedOfData(rest);
    // Some servers close, or are cut off, after the last word and before the event that says so.
    return hearing.isOver() || !hearing.isFinished() ? passed : passed + written(hearing.done());
  }

  function taken(value: Uint8Array | null): string {
    try {
      return value === null ? end() : take(decoder.decode(value, { stream: true }));
    } catch (error) {
      return fail({ kind: 'malformed', detail: (error as Error).message });
    }
  }

  return {
    pass(value) {
      const passed = taken(value);
      bytes += value?.byteLength ?? 0;
      const max = document === null ? bounds.stream : bounds.document;
      if (bytes > max) fail({ kind: 'excessive', detail: `${max} bytes` });
      return encoder.encode(passed);
    },
    isOver: () => isOver,
  };
}
