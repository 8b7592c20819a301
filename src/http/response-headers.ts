/** The documented response headers. */
import type { FastifyReply } from 'fastify';

/** Their descriptions and types; `components.headers` of the document. */
export const responseHeaders = {
  'X-Request-Id': {
    description: 'The id of the request: yours when you sent a usable one, else a new one.',
    schema: { type: 'string' },
  },
  'X-RateLimit-Limit': {
    description: 'Requests per minute that the key may make.',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left in the minute that ends now.',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Reset': {
    description: 'Unix second at which the oldest counted request leaves the minute.',
    schema: { type: 'integer' },
  },
  'Retry-After': {
    description: 'Whole seconds to wait before another try.',
    schema: { type: 'integer', minimum: 1 },
  },
  'X-Total-Count': {
    description: 'Entries in the whole list, over all pages.',
    schema: { type: 'integer' },
  },
  'X-Next-Offset': {
    description:
      'Sent where a page ends before its limit because its entries are large: the offset at which to go on.',
    schema: { type: 'integer', minimum: 1 },
  },
  Location: {
    description: 'Path of what was created.',
    schema: { type: 'string' },
  },
  'Preference-Applied': {
    description: 'The wait that was honoured, when the job ended within it.',
    schema: { type: 'string', examples: ['wait=30'] },
  },
  'Idempotent-Replayed': {
    description: 'Sent as true when the answer is that of an earlier request with the same key.',
    schema: { type: 'string', const: 'true' },
  },
} as const;

export type ResponseHeader = keyof typeof responseHeaders;

/** Adds headers to a response schema, in addition to those of every response. */
export function carries(...names: ResponseHeader[]): { headers: Record<string, object> } {
  return { headers: Object.fromEntries(names.map((name) => [name, {}])) };
}

/** Sets the offset of the next page; null for a page that was not cut. */
export function tellNext(reply: FastifyReply, next: number | null): void {
  if (next !== null) reply.header('x-next-offset', next);
}
