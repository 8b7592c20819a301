/** The scopes that reach what agents keep of users; any key reaches the agents' own memories. */
import type { FastifyRequest } from 'fastify';
import { hasScopes, requireScopes } from '../../kernel/caller.ts';
import { callerOf } from './authenticate.ts';

const usersScopes = ['memories', 'user-data'];

export function reachesUsers(request: FastifyRequest): boolean {
  const { scopes } = callerOf(request);
  return usersScopes.some((scope) => hasScopes(scopes, [scope]));
}

export function requireUsersScope(request: FastifyRequest): void {
  if (!reachesUsers(request)) requireScopes(callerOf(request).scopes, usersScopes.slice(0, 1));
}
