/** What the routes of all kinds of remote sources share. */
import type { FastifyRequest } from 'fastify';

/** A hook: an unknown source is 404 before any other check (docs/decisions/order-of-checks.md). */
export function requireSource(sources: { require(name: string): Promise<unknown> }) {
  return async ({ params }: FastifyRequest) => {
    await sources.require((params as { name: string }).name);
  };
}
