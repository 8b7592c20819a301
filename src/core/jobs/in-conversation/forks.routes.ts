/** `POST /api/conversations/:id/fork`: a conversation that begins with messages of another one. */
import { callerOf } from '../../../adapters/http/authenticate.ts';
import { lookUp } from '../../../adapters/http/look-up.ts';
import type { Server } from '../../../adapters/http/server.ts';
import { userOf } from '../../../adapters/http/user-id.ts';
import { forkSchema } from './forks.schemas.ts';
import type { Forks } from './forks.ts';

export function forkRoutes(server: Server, forks: Forks): void {
  /** An unknown conversation is 404 before the body is validated (docs/decisions/order-of-checks.md). */
  const onRequest = lookUp('id', (id, caller) => forks.requireForkable(caller, id));
  const options = { onRequest, schema: forkSchema };
  server.post('/api/conversations/:id/fork', options, async (request, reply) => {
    const { before } = request.body;
    const given = { before, user: userOf(request) };
    const fork = await forks.fork(callerOf(request), request.params.id, given);
    return reply.status(201).header('location', `/api/conversations/${fork.id}`).send(fork);
  });
}
