import type { FastifyRequest } from 'fastify';

/** A hook for an operation whose body may be left out: it then has no fields. */
export async function allowNoBody(request: FastifyRequest): Promise<void> {
  if (request.body === undefined) request.body = {};
}
