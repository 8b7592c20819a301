/**
 * Normalizes the url of a request before routing: to origin form, with escapes that decode to clean text
 * (docs/decisions/json-and-lists.md). An unreadable url is refused like an unknown route, by the same
 * hooks in the same order, so that its caller is authenticated first.
 */
import { isCleanText } from '../../kernel/text.ts';

/** The absolute form `http://host/path`, which proxies send and RFC 9112 (3.2.2) requires servers to accept. */
const origin = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;
/** A host and a port as in a Host header (RFC 9110, 7.2): no credentials, no path, no quotes. It may be empty. */
const authority = /^(?:\[[\da-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d{0,5})?$/i;
/** A path without a route, for urls whose path is unreadable: `/` has one. */
const noRoute = '/.unreadable';
/** The prefixes whose hooks authenticate a request: `guarded` takes no other. */
const guardedPrefixes = ['/api', '/admin', '/mcp'] as const;
export type GuardedPrefix = (typeof guardedPrefixes)[number];

const guardedUrl = new RegExp(`^(?:${guardedPrefixes.join('|')})(?:[/?#]|$)`);
/** The same, and that of triggers, whose hook admits a request without a key. No route is one of them alone. */
const hookedRoot = new RegExp(`^(?:/api/webhooks/agent|${guardedPrefixes.join('|')})/`);

/** Whether a url is below a prefix whose hooks authenticate the caller. */
export function isGuarded(url: string): boolean {
  return guardedUrl.test(url);
}

/** Path and query. */
export function originForm(url: string): string {
  if (url.startsWith('/')) return url;
  const own = url.replace(origin, '');
  return own.startsWith('/') ? own : `/${own}`;
}

/** Whether a Host header, or what stands in its place in a url in absolute form, names a host. */
export function isAuthority(text: string): boolean {
  return authority.test(text);
}

/** The host that a url in absolute form names, with its port; undefined for a url in origin form. */
export function authorityOf(url: string): string | undefined {
  return url.startsWith('/') ? undefined : origin.exec(url)?.[1];
}

export function pathOf(url: string): string {
  return url.split('?', 1)[0] as string;
}

/** Whether all percent-escapes are UTF-8 without NUL. */
export function isReadable(escaped: string): boolean {
  if (!escaped.includes('%')) return true;
  try {
    return isCleanText(decodeURIComponent(escaped));
  } catch {
    return false;
  }
}

/** The unreadable query parameter, `query` when its name is unreadable, or null. */
export function unreadableParameter(url: string): string | null {
  if (isReadable(url)) return null;
  const parameters = url.slice(pathOf(url).length + 1).split('&');
  const name = parameters.find((text) => !isReadable(text))?.split('=', 1)[0];
  return name !== undefined && isReadable(name) ? decodeURIComponent(name) : 'query';
}

/** The url for the router; for an unreadable path, a url without a route. */
export function routedUrl(url: string): string {
  const own = originForm(url);
  const path = pathOf(own);
  return isReadable(path) ? own : (hookedRoot.exec(path)?.[0] ?? noRoute);
}
