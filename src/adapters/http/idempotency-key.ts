/** The header Idempotency-Key, and other headers that may come once. */
import { isUtf8 } from 'node:buffer';
import type { FastifyRequest } from 'fastify';
import { type TStringOptions, Type } from 'typebox';
import { invalid } from '../../kernel/errors.ts';
import { isRepeated } from './authenticate.ts';

/** Characters of a key. */
const keyMax = 255;

/** A header that may come once, in the schema of a route; `onceGiven` reads it. */
export const OnceGiven = (description: string, options: TStringOptions = {}) =>
  Type.Optional(
    Type.String({
      ...options,
      description: `${description} It may be sent once: 400 validation_error where it is repeated.`,
    }),
  );

/** The header in the schema of a route; `description` says what a repeat does not make twice. */
export const IdempotencyKey = (description: string) =>
  OnceGiven(description, { maxLength: keyMax });

/**
 * A header that may come once; throws `400` for a repeated one. Node decodes the bytes of headers as Latin-1: those that
 * are valid UTF-8 are decoded as UTF-8.
 */
export function onceGiven(request: FastifyRequest, name: string): string | undefined {
  const value = undecoded(request, name);
  if (value === undefined || !/[\x80-\xff]/.test(value)) return value;
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : value;
}

function undecoded(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  if (value === undefined) return undefined;
  if (typeof value === 'string' && !isRepeated(request, name)) return value;
  throw invalid(name, 'must be given once');
}

/** The key of a request, as Node decodes it: it is compared, and shown to no one. Throws `400` for an invalid one. */
export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const key = undecoded(request, 'idempotency-key');
  if (key !== undefined && (key === '' || key.length > keyMax)) {
    throw invalid('idempotency-key', `must be 1 to ${keyMax} characters`);
  }
  return key;
}
