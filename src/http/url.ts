/**
 * The address of a request before anything is matched with it: in origin form, and with escapes that
 * stand for clean text (docs/decisions/json-and-lists.md). What cannot be read is refused like an unknown route, by the
 * same hooks in the same order, so that it too is answered to a known caller.
 */
import { isCleanText } from '../kernel/text.ts';

/** As proxies send it and RFC 9112 (3.2.2) has every server accept it: `http://host/path`. */
const origin = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;
/**
 * Below these the hooks of one prefix judge a request, by a key or, at the triggers, without one. No
 * route is called just that with a slash.
 */
const hookedRoot = /^\/(?:api\/webhooks\/agent|api|admin)\//;

/** Whether a url is below a prefix whose hooks judge the caller. */
export function isGuarded(url: string): boolean {
  return /^\/(?:api|admin)(?:[/?#]|$)/.test(url);
}

/** Path and query. */
export function originForm(url: string): string {
  if (url.startsWith('/')) return url;
  const own = url.replace(origin, '');
  return own.startsWith('/') ? own : `/${own}`;
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

/** The query parameter that cannot be read, `query` when its name cannot; null when all can be. */
export function unreadableParameter(url: string): string | null {
  if (isReadable(url)) return null;
  const parameters = url.slice(pathOf(url).length + 1).split('&');
  const name = parameters.find((text) => !isReadable(text))?.split('=', 1)[0];
  return name !== undefined && isReadable(name) ? decodeURIComponent(name) : 'query';
}

/** What the router is to match; for a path that cannot be read one that has no route. */
export function routedUrl(url: string): string {
  const own = originForm(url);
  const path = pathOf(own);
  return isReadable(path) ? own : (hookedRoot.exec(path)?.[0] ?? '/');
}
