/** Groups of routes behind a hook that admits requests: the keys of /api, the secret of /admin. */
import type { FastifyRequest } from 'fastify';
import { invalid, invalidIn, type PlatformError } from '../../kernel/errors.ts';
import type { adminHook } from './authenticate.ts';
import type { rememberRoutes } from './routes-known.ts';
import type { Server } from './server.ts';
import { type GuardedPrefix, isGuarded } from './url.ts';

/** Fields that a refusal names, and characters of their names. */
const issuesMax = 50;
const nameMax = 200;

/** Registers `routes` behind `hook`, which also applies to unknown paths below the prefix. */
export function guarded(
  server: Server,
  prefix: GuardedPrefix,
  hook: ReturnType<typeof adminHook>,
  unmatched: ReturnType<typeof rememberRoutes>,
  routes: (scope: Server) => void,
): void {
  server.register((scope, _options, done) => {
    scope.addHook('onRequest', hook);
    scope.addHook('onRequest', (request, _reply, next) => {
      // Before the body is read, so that an unknown path is 404 with any body.
      if (request.is404) next(unmatched(request.method, request.originalUrl));
      else next();
    });
    scope.addHook('onRoute', (route) => {
      if (route.schema?.body !== undefined) return;
      route.preValidation = [route.preValidation ?? [], refuseBody].flat();
    });
    routes(scope as unknown as Server);
    scope.register(
      (under, _none, ready) => {
        under.setNotFoundHandler((request) => {
          throw unmatched(request.method, request.originalUrl);
        });
        ready();
      },
      { prefix },
    );
    done();
  });
}

/** A hook for an operation without a body. */
function refuseBody({ body }: FastifyRequest, _reply: unknown, next: (error?: Error) => void) {
  next(unexpectedBody(body));
}

/** The refusal of a body for an operation without one; an empty object counts as no body. */
function unexpectedBody(body: unknown): PlatformError | undefined {
  if (body === undefined) return undefined;
  if (body === null || typeof body !== 'object' || Array.isArray(body)) {
    return invalid('body', 'is not expected');
  }
  const fields = Object.keys(body).slice(0, issuesMax);
  if (fields.length === 0) return undefined;
  return invalidIn(
    fields.map((field) => ({ field: field.slice(0, nameMax), issue: 'is not allowed' })),
  );
}

/** Refuses unknown paths outside the guarded prefixes before their body is read. */
export function refuseUnknown(server: Server, unmatched: ReturnType<typeof rememberRoutes>): void {
  server.addHook('onRequest', (request, _reply, next) => {
    if (request.is404 && !isGuarded(request.url))
      next(unmatched(request.method, request.originalUrl));
    else next();
  });
  server.setNotFoundHandler((request) => {
    throw unmatched(request.method, request.originalUrl);
  });
}
