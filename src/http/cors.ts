/**
 * Cross-origin requests from browsers, for the origins that the operator names. Credentials of the browser are
 * never allowed: a page of another origin sends an API key, and no session of the console reaches it. What
 * administrators do stays closed to other origins.
 *
 * Not @fastify/cors: its route for OPTIONS on every path would make each unknown path one with a method, and
 * so a 404 a 405.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { responseHeaders } from './response-headers.ts';
import type { Server } from './server.ts';
import { pathOf } from './url.ts';

const methods = 'GET, POST, PUT, DELETE';
const requestHeaders = [
  ...['content-type', 'x-api-key', 'x-request-id', 'idempotency-key', 'prefer', 'last-event-id'],
  ...['x-agent-id', 'x-user-id', 'x-conversation-id'],
  // Of the Model Context Protocol.
  ...['authorization', 'mcp-protocol-version', 'mcp-method', 'mcp-name'],
].join(', ');
const exposed = Object.keys(responseHeaders).join(', ');
/** Seconds for which a browser may remember a preflight. */
const maxAgeS = 600;
const open =
  /^\/(?:api\/|mcp$|\.well-known\/oauth-protected-resource(?:\/mcp)?$|health$|openapi\.json$)/;

/** Registers the hook, before those that ask for credentials; without origins, nothing. */
export function allowOrigins(server: Server, origins: ReadonlySet<string> | null): void {
  if (origins === null) return;
  server.addHook('onRequest', (request, reply, done) => {
    if (!open.test(pathOf(request.url))) {
      done();
      return;
    }
    // Also where the origin is refused: a cache must not give the answer to another one.
    reply.header('vary', 'Origin');
    const { origin } = request.headers;
    const isAllowed = origin !== undefined && (origins.has('*') || origins.has(origin));
    if (!isAllowed) {
      done();
      return;
    }
    reply.header('access-control-allow-origin', origins.has('*') ? '*' : origin);
    if (isPreflight(request)) answerPreflight(reply);
    else {
      reply.header('access-control-expose-headers', exposed);
      done();
    }
  });
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

function answerPreflight(reply: FastifyReply): void {
  void reply
    .status(204)
    .header('access-control-allow-methods', methods)
    .header('access-control-allow-headers', requestHeaders)
    .header('access-control-max-age', String(maxAgeS))
    .send();
}
