/**
 * Cross-origin requests from browsers, for the origins that the operator names. Credentials of the browser are
 * never allowed: a page of another origin sends an API key, and no session of the console reaches it. What
 * administrators do stays closed to other origins. A browser shows its page nothing of a refusal, so the refused preflight
 * and the log say what to set.
 *
 * Not @fastify/cors: its route for OPTIONS on every path would make each unknown path one with a method, and
 * so a 404 a 405.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../kernel/clock.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { Logger } from '../../kernel/log.ts';
import { responseHeaders } from './response-headers.ts';
import type { Server } from './server.ts';
import { pathOf } from './url.ts';

const methods = 'GET, POST, PUT, PATCH, DELETE';
/** Of every request; those that operations declare are read from their schemas. */
const commonHeaders = [
  ...['content-type', 'x-api-key', 'x-request-id'],
  // Of the Model Context Protocol.
  ...['authorization', 'mcp-protocol-version', 'mcp-method', 'mcp-name'],
];
const exposed = Object.keys(responseHeaders).join(', ');
/** Seconds for which a browser may remember a preflight. */
const maxAgeS = 600;
const open =
  /^\/(?:api\/|mcp$|\.well-known\/oauth-protected-resource(?:\/mcp)?$|health$|openapi\.json$)/;

/** Lines about refused origins in an hour, one for each origin: strangers choose the header. */
const linesPerHourMax = 20;
const hourMs = 3_600_000;
const namedOrigin = /^https?:\/\/[\w.:[\]-]{1,253}$/;

/**
 * Registers the hook, before those that ask for credentials, and before the routes, whose headers it allows. Without
 * `origins` it refuses all of them.
 */
export function allowOrigins(
  server: Server,
  origins: ReadonlySet<string> | null,
  log: Pick<Logger, 'info'>,
  clock: Pick<Clock, 'monotonic'>,
): void {
  const refused = new RefusedOrigins(log, clock);
  const requestHeaders = new Set(commonHeaders);
  server.addHook('onRoute', ({ url, schema }) => {
    const { properties = {} } = (schema?.headers ?? {}) as { readonly properties?: object };
    if (open.test(url)) for (const name of Object.keys(properties)) requestHeaders.add(name);
  });
  server.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers;
    if ((origins === null && origin === undefined) || !open.test(pathOf(request.url))) {
      done();
      return;
    }
    // Also where the origin is refused: a cache must not give the answer to another one.
    if (origins !== null) reply.header('vary', 'Origin');
    if (origin === undefined) {
      done();
      return;
    }
    if (!origins?.has('*') && !origins?.has(origin)) {
      done(refuse(refused, request, reply, origin));
      return;
    }
    reply.header('access-control-allow-origin', origins.has('*') ? '*' : origin);
    if (isPreflight(request)) answerPreflight(reply, requestHeaders);
    else {
      reply.header('access-control-expose-headers', exposed);
      done();
    }
  });
}

/**
 * The refusal of a preflight. Any other request goes on: the page that sent it gets no answer from its browser, and programs
 * may send an origin too.
 */
function refuse(
  refused: RefusedOrigins,
  request: FastifyRequest,
  reply: FastifyReply,
  origin: string,
): PlatformError | undefined {
  const asksFirst = isPreflight(request);
  if (!asksFirst && !isOfOtherPage(request)) return undefined;
  const hint = hintFor(origin);
  refused.log(origin, hint);
  if (!asksFirst) return undefined;
  // Chromium's developer tools show the headers of a refused preflight, and not its body.
  reply.header('cors-hint', hint);
  return new PlatformError('method_not_allowed', hint, { allow: methods });
}

function hintFor(origin: string): string {
  return namedOrigin.test(origin)
    ? `Pages of ${origin} may not call this platform: add the origin to CORS_ORIGINS (CORS_ORIGINS=${origin})`
    : 'Pages without an address of their own, such as a file, may not call this platform: serve the page, and add its origin to CORS_ORIGINS';
}

/** As the browser says, which pages cannot change. */
function isOfOtherPage({ headers }: FastifyRequest): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-site': site } = headers;
  return mode === 'cors' && (site === 'cross-site' || site === 'same-site');
}

/** Logs each refused origin once an hour. */
class RefusedOrigins {
  readonly #sink: Pick<Logger, 'info'>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #logged = new Set<string>();
  #since = Number.NEGATIVE_INFINITY;

  constructor(sink: Pick<Logger, 'info'>, clock: Pick<Clock, 'monotonic'>) {
    this.#sink = sink;
    this.#clock = clock;
  }

  log(origin: string, hint: string): void {
    const now = this.#clock.monotonic();
    if (now - this.#since >= hourMs) {
      this.#since = now;
      this.#logged.clear();
    }
    if (this.#logged.size >= linesPerHourMax || this.#logged.has(hint)) return;
    this.#logged.add(hint);
    this.#sink.info({ ...(namedOrigin.test(origin) && { origin }) }, hint);
  }
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

function answerPreflight(reply: FastifyReply, requestHeaders: ReadonlySet<string>): void {
  void reply
    .status(204)
    .header('access-control-allow-methods', methods)
    .header('access-control-allow-headers', [...requestHeaders].join(', '))
    .header('access-control-max-age', String(maxAgeS))
    .send();
}
