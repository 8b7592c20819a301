/** The documented response headers. */
import type { FastifyReply } from 'fastify';

/** Their descriptions and types; `components.headers` of the document. */
export const responseHeaders = {
  'X-Request-Id': {
    description: "The id of the request: the client's if it is usable, else a new one.",
    schema: { type: 'string' },
  },
  'X-RateLimit-Limit': {
    description: 'Requests per minute that the key may make.',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left in the last 60 seconds.',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Reset': {
    description: 'Unix second at which the oldest counted request leaves the window.',
    schema: { type: 'integer' },
  },
  'Retry-After': {
    description: 'Whole seconds to wait before the next request.',
    schema: { type: 'integer', minimum: 1 },
  },
  'X-Total-Count': {
    description: 'Number of entries on all pages.',
    schema: { type: 'integer' },
  },
  'X-Next-Offset': {
    description:
      'Present if large entries end a page before its limit: the offset of the next page.',
    schema: { type: 'integer', minimum: 1 },
  },
  ETag: {
    description:
      'Names this content: sent as If-None-Match, it is answered with 304 while the content is the same.',
    schema: { type: 'string' },
  },
  Location: {
    description: 'Path of the created resource.',
    schema: { type: 'string' },
  },
  'Preference-Applied': {
    description: 'The honoured wait, if the job ended within it.',
    schema: { type: 'string', examples: ['wait=30'] },
  },
  'X-Job-Key-Result': {
    description:
      'What the x-job-key did: replaced (an earlier job was cancelled for this one), skipped (the job is an earlier one), debounced (the job is an earlier one with this input); absent where it did nothing.',
    schema: { type: 'string', enum: ['replaced', 'skipped', 'debounced'] },
  },
  'Idempotent-Replayed': {
    description: 'true if the response is that of an earlier request with the same key.',
    schema: { type: 'string', const: 'true' },
  },
} as const;

export type ResponseHeader = keyof typeof responseHeaders;

/** Adds headers to a response schema, in addition to those of every response. */
export function carries(...names: ResponseHeader[]): { headers: Record<string, object> } {
  return { headers: Object.fromEntries(names.map((name) => [name, {}])) };
}

/** Sets the offset of the next page; null for a page that was not cut. */
export function setNextOffset(reply: FastifyReply, next: number | null): void {
  if (next !== null) reply.header('x-next-offset', next);
}
