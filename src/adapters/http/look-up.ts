/** Looks up what paths name. */
import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../kernel/caller.ts';
import { callerOf } from './authenticate.ts';

/**
 * A hook that looks up what a parameter of the path names, so that an unknown one is 404 before any other check
 * (docs/decisions/order-of-checks.md). Behind the administrator's secret there is no caller.
 */
export function lookUp(parameter: string, find: (value: string, caller: Caller) => unknown) {
  return async (request: FastifyRequest): Promise<void> => {
    await find((request.params as Record<string, string>)[parameter] ?? '', callerOf(request));
  };
}
