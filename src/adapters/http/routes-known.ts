/** The methods of each path, so that a wrong method is `405` with `Allow` and not `404`. */
import { invalid, notFound, PlatformError } from '../../kernel/errors.ts';
import type { Server } from './server.ts';
import { isReadable, originForm, pathOf } from './url.ts';

/**
 * Records the routes that are registered on `server` from now on. Returns a function that makes the
 * refusal of an unmatched request from its url. No skill category may be one of the `reserved` words.
 */
export function rememberRoutes(
  server: Server,
  reserved: ReadonlySet<string>,
): (method: string, url: string) => PlatformError {
  const routes = new Map<string, { pattern: RegExp; methods: Set<string> }>();
  server.addHook('onRoute', ({ url, method }) => {
    const known = routes.get(url) ?? {
      pattern: patternOf(url, reserved),
      methods: new Set<string>(),
    };
    for (const one of Array.isArray(method) ? method : [method]) known.methods.add(one);
    routes.set(url, known);
  });
  return (method, url) => {
    const path = pathOf(originForm(url));
    if (!isReadable(path)) return invalid('path', 'must be percent-encoded UTF-8 without NUL');
    const matching = [...routes].filter(([, { pattern }]) => pattern.test(path));
    // As in the router, a literal segment takes precedence over a parameter: /api/jobs/x/cancel is no skill.
    const literal = matching.filter(([route]) => literalSegments(route) === best(matching));
    const methods = new Set(literal.flatMap(([, { methods: known }]) => [...known]));
    if (methods.size === 0 || methods.has(method)) return notFound('Route');
    const allow = [...methods].sort().join(', ');
    return new PlatformError('method_not_allowed', `This path knows ${allow}`, { allow });
  };
}

/** Reserved words are never a category, so `/api/jobs/x/y` is not the path of a skill. */
function patternOf(url: string, reserved: ReadonlySet<string>): RegExp {
  const segments = url.split('/').map((segment) => {
    if (segment === ':category') return `(?!(?:${[...reserved].join('|')})/)[^/]+`;
    if (segment.startsWith(':')) return '[^/]+';
    if (segment === '*') return '.*';
    return segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  });
  return new RegExp(`^${segments.join('/')}$`);
}

function literalSegments(url: string): number {
  return url.split('/').filter((segment) => !segment.startsWith(':') && segment !== '*').length;
}

function best(matching: readonly [string, unknown][]): number {
  return Math.max(...matching.map(([route]) => literalSegments(route)));
}
