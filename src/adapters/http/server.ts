/**
 * Creates the HTTP server without routes: limits on size and time, strict bodies, errors in the
 * specification's format. Slow clients are disconnected (connections.ts).
 */

import { createServer as createHttpServer, type RequestListener } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { TObject } from 'typebox';
import { invalidIn, PlatformError } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { compileSchema, type JsonSchema, type Validate } from '../../kernel/json-schema.ts';
import type { Logger } from '../../kernel/log.ts';
import { bodyBytesMax, parseJsonBody } from './body.ts';
import { ClientAddresses } from './client-address.ts';
import { type ConnectionLimits, Connections, countByAddress } from './connections.ts';
import {
  answerClientError,
  asPlatformError,
  errorBody,
  errorHeaders,
  refuseTunnel,
} from './errors.ts';
import type { HttpMetrics } from './http-metrics.ts';
import { OutageLevels } from './outage-levels.ts';
import { ownCompilers } from './own-compilers.ts';
import { queryHook, queryReader } from './query.ts';
import { authorityOf, isAuthority, routedUrl } from './url.ts';

/** More than a client has to send a whole request, which connections.ts decides. */
const requestMarginMs = 15_000;
const headersTimeoutMs = 10_000;
const keepAliveTimeoutMs = 72_000;
const connectionsMax = 10_000;
/** Headers that a route has given an answer which it could not begin: they say nothing of the refusal. */
const ofContent = ['etag', 'content-disposition', 'content-range', 'accept-ranges'];
/** The limit of Node for all headers of a request, so that a long segment is 404 and not refused. */
const pathSegmentMax = 16_384;

export type Server = FastifyInstance<
  import('node:http').Server,
  import('node:http').IncomingMessage,
  import('node:http').ServerResponse,
  Logger,
  TypeBoxTypeProvider
>;

declare module 'fastify' {
  interface FastifyRequest {
    /** The address of the client, which may be behind trusted proxies (`ClientAddresses`). */
    readonly clientAddress: string;
  }
}

const requestIdPattern = /^[\w.:-]{1,128}$/;

export function createServer(
  log: Logger,
  metrics: HttpMetrics,
  limits: ConnectionLimits,
  clients: ClientAddresses = new ClientAddresses(null),
): Server {
  const outages = new OutageLevels();
  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const refusal = asPlatformError(error);
    if (refusal.status >= 500) logFailure(outages, refusal, request);
    metrics.refused(refusal.code);
    // Fastify would close the connection, and a client that still sends would lose the answer: Node discards the rest.
    if ((error as { code?: string }).code === 'FST_ERR_CTP_BODY_TOO_LARGE')
      reply.removeHeader('connection');
    for (const name of ofContent) reply.removeHeader(name);
    return sendRefusal(refusal, request, reply);
  };
  const server = Fastify({
    loggerInstance: withoutChildren(log),
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: bodyBytesMax,
    serverFactory: (handler) => listenerWithin(limits, clients, handler, log),
    routerOptions: { maxParamLength: pathSegmentMax },
    rewriteUrl: (request) => routedUrl(request.url ?? '/'),
    return503OnClosing: false,
    // `clientAddress` reads the headers of proxies.
    trustProxy: false,
    genReqId(request) {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && requestIdPattern.test(given) ? given : newId();
    },
    frameworkErrors: (error, request, reply) => void refuse(error, request, reply),
    clientErrorHandler: answerClientError,
    schemaController: ownCompilers,
  }).withTypeProvider<TypeBoxTypeProvider>();
  server.server.on('connect', (_request, socket) => refuseTunnel(socket));
  // An unknown `Expect` header is ignored, because Node's own refusal has no body.
  server.server.on('checkExpectation', (request, response) =>
    server.server.emit('request', request, response),
  );
  server.decorateRequest('caller', null);
  server.decorateRequest('clientAddress', {
    getter(this: FastifyRequest) {
      return clients.of(this.raw);
    },
  });
  server.setErrorHandler(refuse);
  validateBySchemas(server);
  addHooks(server, metrics);
  return server;
}

/** Fastify asks for a child for each request, which would cost more than most requests log. */
function withoutChildren(log: Logger): Logger {
  const shared = log.child({});
  return Object.assign(shared, { child: () => shared });
}

/** Node's server, with limits on the time of requests and on connections. */
function listenerWithin(
  limits: ConnectionLimits,
  clients: ClientAddresses,
  handler: RequestListener,
  log: Logger,
) {
  const connections = new Connections(handler, limits, clients, log);
  const http = createHttpServer(
    {
      requestTimeout: limits.uploadMs + requestMarginMs,
      headersTimeout: headersTimeoutMs,
      keepAliveTimeout: keepAliveTimeoutMs,
      connectionsCheckingInterval: 1_000,
      // A hook refuses such requests: Node's own refusal has no body.
      requireHostHeader: false,
    },
    (request, response) => connections.listen(request, response),
  );
  http.maxConnections = connectionsMax;
  connections.watch(http);
  return http;
}

function validateBySchemas(server: Server): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      const encoding = request.headers['content-encoding'];
      if (encoding !== undefined && encoding !== 'identity') {
        throw new PlatformError('unsupported_media_type', 'Send the body without content-encoding');
      }
      done(null, parseJsonBody(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
  // A validator compiles its schema at its first use, so that the start does not wait for all schemas.
  server.setValidatorCompiler(({ schema, httpPart }) => {
    if (httpPart === 'querystring') return queryReader(schema as TObject);
    if (httpPart !== 'body') return () => true;
    const check = checkOf(schema as JsonSchema);
    return (value) => {
      const details = check(value);
      if (details === null) return { value };
      return { error: invalidIn(details) };
    };
  });
  // The code builds answers field by field; tests check them against the schemas.
  server.setSerializerCompiler(() => (value) => JSON.stringify(value));
}

/** Kept for all servers of a process: the schemas of their routes are the same objects. */
const checks = new WeakMap<JsonSchema, Validate>();

function checkOf(schema: JsonSchema): Validate {
  const check = checks.get(schema) ?? compileSchema(schema);
  checks.set(schema, check);
  return check;
}

function addHooks(server: Server, metrics: HttpMetrics): void {
  server.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    requireHost(request);
    countByAddress(request.raw, reply.raw);
    done();
  });
  // Last of a route's hooks before the body: the resource of the path has been found, so now the query is checked.
  server.addHook('onRoute', (route) => {
    route.onRequest = [route.onRequest ?? [], queryHook(route) ?? []].flat();
  });
  server.addHook('onResponse', (request, reply, done) => {
    const { url = 'unmatched' } = request.routeOptions;
    metrics.answered(request.method, url, reply.statusCode, reply.elapsedTime / 1000);
    done();
  });
}

/** Throws `400` unless the request names one host (RFC 9112, 3.2). */
function requireHost({ raw, originalUrl }: FastifyRequest): void {
  const { httpVersion, headers, rawHeaders } = raw;
  const refuse = (message: string) => new PlatformError('validation_error', message);
  if (headers.host === undefined) {
    if (httpVersion === '1.1') throw refuse('The request has no Host header');
    return;
  }
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  if (count > 1) throw refuse('The request has more than one Host header');
  if (!isAuthority(headers.host)) throw refuse('The Host header names no host');
  if (!isAuthority(authorityOf(originalUrl) ?? '')) throw refuse('The url names no host');
}

function logFailure(outages: OutageLevels, refusal: PlatformError, request: FastifyRequest): void {
  const { code, cause, message } = refusal;
  const level = code === 'service_unavailable' ? outages.levelOf(cause) : 'error';
  request.log[level]({ err: cause ?? refusal, request_id: request.id }, message);
}

function sendRefusal(
  refusal: PlatformError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  return reply
    .status(refusal.status)
    .headers({ 'x-request-id': request.id, ...errorHeaders(refusal) })
    .header('content-type', 'application/json; charset=utf-8')
    .serializer(JSON.stringify)
    .send(errorBody(refusal));
}
