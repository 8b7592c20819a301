/**
 * Compressed answers: JSON of GET requests above a size, with gzip where the client accepts it. Streams
 * are not compressed. Neither are answers to other methods: some hold a new secret next to text of the
 * caller, so the compressed size could reveal the secret.
 *
 * `@fastify/compress` 9.2 was considered. It compresses texts up to a bound on the event loop, and larger
 * ones as streams without `Content-Length`; it sets `Vary` on compressed answers alone, and has no rule by
 * method, so each route would need one. Five packages for these few lines are not worth it.
 */
import { constants, gzip } from 'node:zlib';
import type { Server } from './server.ts';

/** A smaller answer fits into one or two packets, so compressing it takes longer than it saves. */
const bytesMin = 2_048;
/** The fastest level reduces JSON to a quarter or a tenth; better levels take several times as long. */
const options = { level: constants.Z_BEST_SPEED };

export function compressAnswers(server: Server): void {
  server.addHook('onSend', (request, reply, payload, done) => {
    const isCompressible =
      request.method === 'GET' &&
      (typeof payload === 'string' || Buffer.isBuffer(payload)) &&
      payload.length >= bytesMin &&
      String(reply.getHeader('content-type')).startsWith('application/json') &&
      !reply.hasHeader('content-encoding');
    if (!isCompressible) {
      done(null, payload);
      return;
    }
    const vary = reply.getHeader('vary');
    reply.header('vary', vary === undefined ? 'accept-encoding' : `${vary}, accept-encoding`);
    if (!acceptsGzip(String(request.headers['accept-encoding'] ?? ''))) {
      done(null, payload);
      return;
    }
    // Runs on a thread of its own, so it does not block the event loop.
    gzip(payload, options, (error, compressed) => {
      if (error !== null) {
        done(error);
        return;
      }
      reply.removeHeader('content-length');
      reply.header('content-encoding', 'gzip');
      done(null, compressed);
    });
  });
}

/**
 * Whether the header Accept-Encoding accepts gzip, or any coding, with a quality above 0.
 * @public For tests.
 */
export function acceptsGzip(header: string): boolean {
  const codings = header.toLowerCase().split(',');
  const qualityOf = (wanted: string) => {
    const coding = codings.find((one) => one.split(';', 1)[0]?.trim() === wanted);
    if (coding === undefined) return undefined;
    const quality = /;\s*q=([\d.]{1,5})\s*$/.exec(coding)?.[1];
    return quality === undefined ? 1 : Number(quality);
  };
  return (qualityOf('gzip') ?? qualityOf('*') ?? 0) > 0;
}
