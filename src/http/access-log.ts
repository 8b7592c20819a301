/**
 * Lines of the log about requests: with ACCESS_LOG one for each request, and always one for each
 * deletion or revocation. They name the route by its pattern, never the path or the query as they were
 * sent, which may hold the token of a trigger, and no header but the request's id.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../kernel/caller.ts';
import type { Logger } from '../kernel/log.ts';
import type { Server } from './server.ts';

export function logRequests(server: Server, log: Logger, isAccessLogOn: boolean): void {
  if (isAccessLogOn) {
    server.addHook('onRequest', (request, reply, done) => {
      const begun = performance.now();
      // Unlike Fastify's own hook, this event also comes when the client has gone.
      reply.raw.once('close', () => {
        const ms = Math.round((performance.now() - begun) * 10) / 10;
        const { statusCode, headersSent, writableFinished } = reply.raw;
        log.info(
          {
            ...factsOf(request),
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

/** A revocation of an API key is one, too. */
function isDeletion({ method, routeOptions }: FastifyRequest, { statusCode }: FastifyReply) {
  return method === 'DELETE' && statusCode < 300 && routeOptions.schema?.hide !== true;
}

function factsOf(request: FastifyRequest) {
  const { caller } = request as unknown as { caller: Caller | null };
  return {
    method: request.method,
    route: request.is404 ? 'unmatched' : (request.routeOptions.url ?? 'unmatched'),
    address: request.ip,
    request_id: request.id,
    ...(caller && { organization_id: caller.organizationId, api_key_id: caller.keyId }),
  };
}
