/** Groups of routes behind a hook that admits requests: the keys of /api, the secret of /admin. */
import { invalid, invalidIn, type PlatformError } from '../kernel/errors.ts';
import type { adminHook } from './authenticate.ts';
import type { rememberRoutes } from './routes-known.ts';
import type { Server } from './server.ts';
import { isGuarded } from './url.ts';

/** Fields that a refusal names, and characters of their names. */
const issuesMax = 50;
const nameMax = 200;

/** Puts `routes` behind `hook`. Whoever asks for an unknown one has to be admitted first, too. */
export function guarded(
  server: Server,
  prefix: string,
  hook: ReturnType<typeof adminHook>,
  unmatched: ReturnType<typeof rememberRoutes>,
  routes: (scope: Server) => void,
): void {
  server.register((scope, _options, done) => {
    scope.addHook('onRequest', hook);
    scope.addHook('onRequest', (request, _reply, next) => {
      // Before the body is read: an unknown path is not found, whatever was sent to it.
      if (request.is404) next(unmatched(request.method, request.originalUrl));
      else next();
    });
    scope.addHook('preValidation', (request, _reply, next) => {
      const takesBody = request.routeOptions.schema?.body !== undefined;
      next(takesBody ? undefined : unexpectedBody(request.body));
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

/** What to refuse the body of an operation with that takes none; an empty object is as good as none. */
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

/** Refuses what is unknown and not guarded, before its body is read. */
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
