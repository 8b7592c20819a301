/** Unknown resources are 404 before a malformed request is 400 (docs/decisions/order-of-checks.md). */
import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../kernel/caller.ts';
import { callerOf } from './authenticate.ts';
import { asPlatformError } from './errors.ts';

/** Of a request that is malformed. */
const faults: ReadonlySet<string> = new Set([
  'validation_error',
  'payload_too_large',
  'unsupported_media_type',
]);

/**
 * The `errorHandler` of a route whose handler reads the resource of the path itself: only a malformed
 * request costs a read of its own, and an error of `lookUp` replaces the refusal. Routes that read it in
 * any case before their handler look it up in `onRequest`.
 */
export function unknownFirst(lookUp: (request: FastifyRequest) => Promise<void>) {
  return async (error: unknown, request: FastifyRequest): Promise<never> => {
    const caller: Caller | null = callerOf(request);
    // Without a caller, the request was refused before it was authenticated.
    if (caller !== null && faults.has(asPlatformError(error).code)) {
      await lookUp(request);
    }
    throw error;
  };
}
