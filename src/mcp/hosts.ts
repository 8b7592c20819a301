/**
 * Which hosts and origins a request may name (against DNS rebinding: a page in a browser that reaches a platform on
 * the reader's machine under a name of the page's own). An address is no name that could be rebound.
 */
import { isIP } from 'node:net';

export interface Hosts {
  isHost(header: string | undefined): boolean;
  /** A request without an origin is not that of a page. */
  isOrigin(header: string | undefined): boolean;
}

/** `publicUrl` is the address of the platform, `named` are further hosts, `origins` those of other pages. */
export function createHosts(
  publicUrl: string | null,
  named: ReadonlySet<string> | null,
  origins: ReadonlySet<string> | null,
): Hosts {
  const names = new Set(['localhost', ...(named ?? [])]);
  const own = publicUrl === null ? undefined : URL.parse(publicUrl)?.hostname;
  if (own !== undefined) names.add(own);
  const isAllowed = (url: URL | null) =>
    url !== null && (names.has(url.hostname) || isAddress(url.hostname));
  return {
    isHost: (header) => header !== undefined && isAllowed(URL.parse(`http://${header}`)),
    isOrigin(header) {
      if (header === undefined || origins?.has('*') || origins?.has(header)) return true;
      return isAllowed(URL.parse(header));
    },
  };
}

function isAddress(hostname: string): boolean {
  return isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
}
