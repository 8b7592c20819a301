/**
 * Log lines about requests: one for each request with ACCESS_LOG, and always one for each deletion or
 * revocation. A line names the pattern of the route, because the path and the query may hold the token of
 * a trigger, and no header except the request's id.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../kernel/caller.ts';
import type { Logger } from '../../kernel/log.ts';
import type { Server } from './server.ts';

export function logRequests(server: Server, log: Logger, isAccessLogOn: boolean): void {
  if (isAccessLogOn) {
    server.addHook('onRequest', (request, reply, done) => {
      const begun = performance.now();
      // The connection forgets the address of a client that has disconnected.
      const address = request.clientAddress;
      // Unlike Fastify's own hook, this event is also emitted when the client has disconnected.
      reply.raw.once('close', () => {
        const ms = Math.round((performance.now() - begun) * 10) / 10;
        const { statusCode, headersSent, writableFinished } = reply.raw;
        log.info(
          {
            ...factsOf(request),
            address,
            status: headersSent ? statusCode : null,
            ms,
            ...(writableFinished ? {} : { is_cut: true }),
          },
          'request',
        );
      });
      done();
    });
  }
  server.addHook('onResponse', (request, reply, done) => {
    if (isDeletion(request, reply)) {
      log.info({ audit: 'deleted', ...factsOf(request), params: request.params }, 'deleted');
    }
    done();
  });
}

/** The revocation of an API key counts as a deletion. */
function isDeletion(request: FastifyRequest, { statusCode }: FastifyReply): boolean {
  // The method first: Fastify makes a new object for each look at the options of a route.
  if (request.method !== 'DELETE' || statusCode >= 300) return false;
  return request.routeOptions.schema?.hide !== true;
}

function factsOf(request: FastifyRequest) {
  const { caller } = request as unknown as { caller: Caller | null };
  return {
    method: request.method,
    route: request.is404 ? 'unmatched' : (request.routeOptions.url ?? 'unmatched'),
    address: request.clientAddress,
    request_id: request.id,
    ...(caller && { organization_id: caller.organizationId, api_key_id: caller.keyId }),
  };
}
