/**
 * Reads the binary event stream of AWS (`application/vnd.amazon.eventstream`): takes bytes in chunks, hands over the complete
 * events. A frame has its length, the length of its headers, a checksum of both, headers, a payload and a checksum of all.
 *
 * `@smithy/eventstream-codec` is not used, because it comes with 9 MB in 1,400 files of which this needs one.
 */
import { crc32 } from 'node:zlib';
import { type Json, objectOf, parsed } from '../../kernel/json.ts';
import { ExcessError } from './answer.ts';
import { ProtocolError } from './protocol.ts';

export const eventFrameType = 'application/vnd.amazon.eventstream';

/** Both lengths and their checksum. */
const preludeBytes = 12;
const checksumBytes = 4;
/** Of one frame; a longer one is refused. */
const frameBytesMax = 8 * 1024 * 1024;
/** The type of a header whose value is a text, which all headers of events are. */
const textHeader = 7;

export class EventFrameReader {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** The bytes with which the next step can be made: a prelude, or the whole frame. */
  #needed = preludeBytes;

  /** Hands over the events that end in this chunk. Throws a ProtocolError for what is no frame, after those before it. */
  push(bytes: Uint8Array, take: (event: Json) => void): void {
    this.#chunks.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    this.#bytes += bytes.byteLength;
    if (this.#bytes < this.#needed) return;
    const buffer = Buffer.concat(this.#chunks);
    let from = 0;
    for (;;) {
      const left = buffer.subarray(from);
      this.#needed = left.length < preludeBytes ? preludeBytes : frameBytesOf(left);
      if (left.length < this.#needed || left.length < preludeBytes) break;
      take(eventOf(left.subarray(0, this.#needed)));
      from += this.#needed;
    }
    this.#chunks = [buffer.subarray(from)];
    this.#bytes = buffer.length - from;
  }

  /** Throws a ProtocolError where the stream ended within a frame. */
  end(): void {
    if (this.#bytes > 0) throw new ProtocolError('the stream ends within a frame');
  }
}

/** Throws a ProtocolError where the prelude is wrong. */
function frameBytesOf(buffer: Buffer): number {
  if (crc32(buffer.subarray(0, 8)) !== buffer.readUInt32BE(8)) {
    throw new ProtocolError('a frame has a wrong checksum');
  }
  const bytes = buffer.readUInt32BE(0);
  const headersBytes = buffer.readUInt32BE(4);
  if (bytes > frameBytesMax) throw new ExcessError(`${frameBytesMax} bytes of one frame`);
  if (preludeBytes + headersBytes + checksumBytes > bytes) {
    throw new ProtocolError('the headers of a frame are longer than it');
  }
  return bytes;
}

/** The payload with its `type`; of an exception as `{type, error}`. */
function eventOf(frame: Buffer): Json {
  const end = frame.length - checksumBytes;
  if (crc32(frame.subarray(0, end)) !== frame.readUInt32BE(end)) {
    throw new ProtocolError('a frame has a wrong checksum');
  }
  const headersEnd = preludeBytes + frame.readUInt32BE(4);
  const headers = headersIn(frame.subarray(preludeBytes, headersEnd));
  const payload = objectOf(parsed(frame.toString('utf8', headersEnd, end) || '{}'));
  if (payload === null) throw new ProtocolError('an event is not JSON');
  if (headers.get(':message-type') === 'event') {
    return { ...payload, type: headers.get(':event-type') };
  }
  const type = headers.get(':exception-type') ?? headers.get(':error-code') ?? 'error';
  const message = payload['message'] ?? headers.get(':error-message') ?? type;
  return { type: 'error', error: { type, message } };
}

function headersIn(buffer: Buffer): Map<string, string> {
  const headers = new Map<string, string>();
  let at = 0;
  while (at < buffer.length) {
    const name = textAt(buffer, at + 1, buffer[at] ?? 0);
    at += 1 + name.length;
    if (buffer[at] !== textHeader || at + 3 > buffer.length) {
      throw new ProtocolError('a header of a frame is no text');
    }
    const length = buffer.readUInt16BE(at + 1);
    headers.set(name.toString('utf8'), textAt(buffer, at + 3, length).toString('utf8'));
    at += 3 + length;
  }
  return headers;
}

function textAt(buffer: Buffer, from: number, length: number): Buffer {
  if (from + length > buffer.length) throw new ProtocolError('a header of a frame is cut');
  return buffer.subarray(from, from + length);
}
