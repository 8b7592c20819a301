/**
 * What passes to the SDK of the bytes that a provider answers with: heard, bounded, and always as
 * events. Some servers and gateways do not stream, whatever they are asked, and answer with one JSON
 * document; it is told by how it begins, because what they call it is not to be relied on.
 */
import { eventsOf, statusIn } from './document.ts';
import { createEventDataReader } from './event-data.ts';
import type { Hearing } from './hearing.ts';
import { objectOf, parsed } from './json.ts';
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
  let bytes = 0;
  let isOver = false;

  function fail(fault: WireFault): string {
    isOver = true;
    parts.fail(fault);
    return '';
  }

  /** A document that is an error says what a status would have; a stream has begun to answer. */
  function faultOf(message: string, document: unknown): WireFault {
    const status = statusIn(objectOf(document) ?? {});
    if (status === null) return { kind: 'failed', message };
    return { kind: 'status', status, headers, message };
  }

  /** `data` is the event as it came, null when it did not come like this. */
  function passedOf(event: unknown, data: string | null): string {
    const heard = hearing.hear(event);
    if ('error' in heard) return fail(faultOf(heard.error, data === null ? event : null));
    isOver = hearing.isOver();
    if (!heard.pass) return '';
    const isAsItCame = data !== null && !heard.isMended && !data.includes('\n');
    return `data: ${isAsItCame ? data : JSON.stringify(event)}\n\n`;
  }

  function passedOfData(data: string): string {
    if (data === '[DONE]') isOver = true;
    if (isOver) return '';
    const event = parsed(data);
    if (event !== undefined) return passedOf(event, data);
    return fail({ kind: 'malformed', detail: 'an event is not JSON' });
  }

  function passedOfDocument(text: string): string {
    const whole = objectOf(parsed(text));
    if (whole === null) return fail({ kind: 'malformed', detail: 'it is not JSON' });
    let passed = '';
    for (const event of eventsOf(protocol, whole)) passed += isOver ? '' : passedOf(event, null);
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
    if (document !== null) return passedOfDocument(document.join(''));
    const rest = events.rest();
    return rest === null ? '' : passedOfData(rest);
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
