/** What the routes of all kinds of remote sources share. */
import type { FastifyRequest } from 'fastify';
import type { Sources } from './source-verbs.ts';

/** A hook: an unknown source is 404 before any other check (docs/decisions/order-of-checks.md). */
export function requireSource(sources: Sources<object>) {
  return async ({ params }: FastifyRequest) => {
    await sources.rowOf((params as { name: string }).name);
  };
}
