/**
 * Turns every error into the specification's format (specification: Errors): refusals of our code, of
 * Fastify and of Node's HTTP parser. An internal error reveals no details.
 */

import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { PlatformError } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';

/** Converts any error into one of the table. */
export function asPlatformError(error: unknown): PlatformError {
  if (error instanceof PlatformError) return error;
  const { code, statusCode } = error as { code?: string; statusCode?: number };
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new PlatformError('payload_too_large', 'The body is larger than the operation takes');
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new PlatformError(
        'unsupported_media_type',
        'Send the body with content-type: application/json',
      );
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new PlatformError(
        'validation_error',
        'The body is not as long as Content-Length says',
      );
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new PlatformError('validation_error', 'The request is malformed');
  }
  return new PlatformError('internal_error', 'An unexpected error occurred', { cause: error });
}

/** The body of a refusal. */
export function errorBody({ code, message, extras }: PlatformError) {
  return {
    error: code,
    message,
    ...(extras.details === undefined ? {} : { details: extras.details }),
    ...(code === 'rate_limit_exceeded' ? { retry_after: extras.retryAfter } : {}),
  };
}

/** The headers of a refusal. */
export function errorHeaders({ extras }: PlatformError): Record<string, string> {
  return {
    ...(extras.retryAfter === undefined ? {} : { 'retry-after': String(extras.retryAfter) }),
    ...(extras.allow === undefined ? {} : { allow: extras.allow }),
  };
}

/** Answers a request that Node's HTTP parser refused, and closes the connection. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, refusal] = clientRefusal(error.code);
  answerAndClose(socket, status, refusal);
}

/** Refuses `CONNECT`, because this server is no proxy. */
export function refuseTunnel(socket: Duplex): void {
  socket.on('error', () => socket.destroy());
  answerAndClose(socket, 405, unknownMethod());
}

function answerAndClose(socket: Duplex, status: number, refusal: PlatformError): void {
  const body = JSON.stringify(errorBody(refusal));
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-request-id': newId(),
    ...errorHeaders(refusal),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}

function clientRefusal(code: string | undefined): [number, PlatformError] {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return [431, new PlatformError('validation_error', 'The request headers are too large')];
    case 'HPE_INVALID_METHOD':
      return [405, unknownMethod()];
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, new PlatformError('validation_error', 'The request did not arrive in time')];
    default:
      return [400, new PlatformError('validation_error', 'The request is not valid HTTP')];
  }
}

/** Refuses a method that no path allows, before the path is known. */
function unknownMethod(): PlatformError {
  return new PlatformError('method_not_allowed', 'No path knows this method', {
    allow: 'DELETE, GET, HEAD, PATCH, POST, PUT',
  });
}
