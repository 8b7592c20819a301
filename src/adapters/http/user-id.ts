/** The headers `x-user-id` and `x-user-name`: the user on whose behalf a client calls. */
import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../kernel/caller.ts';
import { invalid } from '../../kernel/errors.ts';
import { isCleanText } from '../../kernel/text.ts';
import { onceGiven } from './idempotency-key.ts';

/** Characters of a user's name. */
export const userNameMax = 200;

/** The user of a request; undefined without the header. Throws `400` for an invalid name, or more than one. */
export function userOf(request: FastifyRequest): string | undefined {
  return nameIn(request, 'x-user-id');
}

/** What the user of a request is called; undefined without the header. Throws `400` as `userOf`. */
export function userNameOf(request: FastifyRequest): string | undefined {
  return nameIn(request, 'x-user-name');
}

function nameIn(request: FastifyRequest, header: string): string | undefined {
  const name = onceGiven(request, header);
  if (name === undefined) return undefined;
  if (name === '' || [...name].length > userNameMax || !isCleanText(name)) {
    throw invalid(header, `must be 1 to ${userNameMax} characters`);
  }
  return name;
}

/** The user of a job. Without `x-user-id` the job has no user and shows the name of its key. */
export function userFor(request: FastifyRequest, { clientName }: Pick<Caller, 'clientName'>) {
  const user = userOf(request);
  return { userId: user ?? clientName, isForUser: user !== undefined };
}
