/**
 * Reads a response body up to a limit of bytes. The limit applies to the decompressed chunks, so a
 * compression bomb costs no more than the limit. It also applies to the compressed bytes, so that an
 * endless body that decompresses to nothing ends.
 */

import { pipeline, type Readable, type Transform } from 'node:stream';
import zlib from 'node:zlib';
import { EgressError } from './egress-error.ts';

export interface BodyLimits {
  readonly maxBytes: number;
  /** What happens to a longer body: an error, or its first `maxBytes` bytes. */
  readonly overflow: 'fail' | 'truncate';
}

export interface BoundedBody {
  readonly bytes: Buffer;
  readonly truncated: boolean;
}

/** A short body may be a little longer compressed than decompressed. */
const overheadBytes = 1024;

/** Servers often leave out the end of a compressed stream; the received part is still valid. */
const lenient = { flush: zlib.constants.Z_SYNC_FLUSH, finishFlush: zlib.constants.Z_SYNC_FLUSH };
const lenientBrotli = {
  flush: zlib.constants.BROTLI_OPERATION_FLUSH,
  finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH,
};

/** The encodings that `readBounded` can decode, for `accept-encoding`. */
export const acceptedEncodings = 'gzip, deflate, br';

/**
 * Reads `source` and decodes `encoding` (a `content-encoding`, or null for none). Fails with an
 * EgressError, code too_large or protocol, or with the error of the source; `into` then holds the part
 * that was read, or has taken its pieces, so that none is kept here. Destroys the source unless it was read to its end.
 */
export async function readBounded(
  source: Readable,
  encoding: string | null,
  limits: BodyLimits,
  into: Buffer[] | ((piece: Buffer) => Promise<void>) = [],
): Promise<BoundedBody> {
  let room = limits.maxBytes;
  const chunks = Array.isArray(into) ? into : [];
  // Destroying the source makes it emit an error, which would be unhandled without a listener.
  source.on('error', () => undefined);
  try {
    for await (const chunk of await decoded(source, encoding, limits.maxBytes + overheadBytes)) {
      const piece = chunk.subarray(0, room);
      if (Array.isArray(into)) into.push(piece);
      else await into(piece);
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

/** The decoded source. Errors of the source and of the decoder appear while reading. */
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

/** The first byte, without consuming it; null for an empty source. */
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
      // `deflate` is the zlib format, but some servers send raw deflate data.
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
