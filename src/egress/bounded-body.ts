/**
 * Reads a response body up to a number of bytes and never past it: what counts is what comes out
 * of decompression, piece by piece, so a compressed bomb costs no more than the limit. What goes in
 * is held to the same limit, or an endless archive that unpacks to nothing would not end.
 */

import { pipeline, type Readable, type Transform } from 'node:stream';
import zlib from 'node:zlib';
import { EgressError } from './egress-error.ts';

export interface BodyLimits {
  readonly maxBytes: number;
  /** What a longer body leads to: an error, or its first `maxBytes` bytes. */
  readonly overflow: 'fail' | 'truncate';
}

export interface BoundedBody {
  readonly bytes: Buffer;
  readonly truncated: boolean;
}

/** A compressed body of few bytes may be a little longer than what it holds. */
const overheadBytes = 1024;

/** Servers often leave out the end of a stream; what is there is still good. */
const lenient = { flush: zlib.constants.Z_SYNC_FLUSH, finishFlush: zlib.constants.Z_SYNC_FLUSH };
const lenientBrotli = {
  flush: zlib.constants.BROTLI_OPERATION_FLUSH,
  finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH,
};

/** What `readBounded` can undo, for `accept-encoding`. */
export const acceptedEncodings = 'gzip, deflate, br';

/**
 * Reads `source`, undoing `encoding` (a `content-encoding`, or null for the bytes as they are).
 * Fails with an EgressError, code too_large or protocol, or with the error of the source; what had
 * been read by then is in `chunks`. The source is destroyed unless it was read to its end.
 */
export async function readBounded(
  source: Readable,
  encoding: string | null,
  limits: BodyLimits,
  chunks: Buffer[] = [],
): Promise<BoundedBody> {
  let room = limits.maxBytes;
  // Breaking it off is an error to the source too, of which nobody else would take notice.
  source.on('error', () => undefined);
  try {
    for await (const chunk of await decoded(source, encoding, limits.maxBytes + overheadBytes)) {
      chunks.push(chunk.subarray(0, room));
      if (chunk.length > room) throw tooLarge(limits.maxBytes);
      room -= chunk.length;
    }
  } catch (error) {
    if (isZlibError(error)) {
      throw new EgressError('protocol', `The answer is not valid ${encoding}`, { cause: error });
    }
    const overflowed = error instanceof EgressError && error.code === 'too_large';
    if (!overflowed || limits.overflow === 'fail') throw error;
    return { bytes: Buffer.concat(chunks), truncated: true };
  } finally {
    source.destroy();
  }
  return { bytes: Buffer.concat(chunks), truncated: false };
}

/** The source as it is meant to be read; a fault of either end shows up while reading. */
async function decoded(
  source: Readable,
  encoding: string | null,
  rawBytesMax: number,
): Promise<AsyncIterable<Buffer>> {
  const coding = (encoding ?? '').trim().toLowerCase();
  if (coding === '' || coding === 'identity') return source;
  const first = await firstByte(source);
  if (first === null) return source;
  const decoder = decoderFor(coding, first);
  // The iteration reports the error; the callback only keeps it from being thrown as well.
  pipeline(source, capped(rawBytesMax), decoder, () => undefined);
  return decoder;
}

/** Looks at the first byte and puts it back; null when there is none. */
async function firstByte(source: Readable): Promise<number | null> {
  for await (const chunk of source.iterator({ destroyOnReturn: false })) {
    source.unshift(chunk);
    return (chunk as Buffer)[0] ?? null;
  }
  return null;
}

function capped(bytesMax: number) {
  return async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let bytes = 0;
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes > bytesMax) throw tooLarge(bytesMax);
      yield chunk;
    }
  };
}

function decoderFor(coding: string, firstByte: number): Transform {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip(lenient);
    case 'deflate':
      // The name means the zlib format, but some servers send the bare one.
      return (firstByte & 0x0f) === 8
        ? zlib.createInflate(lenient)
        : zlib.createInflateRaw(lenient);
    case 'br':
      return zlib.createBrotliDecompress(lenientBrotli);
    default:
      throw new EgressError('protocol', 'The answer is encoded in a way that was not asked for');
  }
}

function tooLarge(bytesMax: number): EgressError {
  return new EgressError('too_large', `The answer is longer than ${bytesMax} bytes`);
}

function isZlibError(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^(Z_|ERR_(BROTLI_)?DECODER|ERR__ERROR|ERR_BROTLI)/.test(code);
}
