/**
 * Which hosts and origins a request may name (against DNS rebinding: a page in a browser that reaches a platform on
 * the reader's machine under a name of the page's own). An address is no name that could be rebound, so any is a host; but
 * a page at an address is the platform's own only where the request goes to that address.
 */
import { isIP } from 'node:net';

export class Hosts {
  readonly #names: Set<string>;
  readonly #origins: ReadonlySet<string> | null;

  /** `publicUrl` is the address of the platform, `named` are further hosts, `origins` those of other pages. */
  constructor(
    publicUrl: string | null,
    named: ReadonlySet<string> | null,
    origins: ReadonlySet<string> | null,
  ) {
    this.#names = new Set(['localhost', ...(named ?? [])]);
    const own = publicUrl === null ? undefined : URL.parse(publicUrl)?.hostname;
    if (own !== undefined) this.#names.add(own);
    this.#origins = origins;
  }

  isHost(header: string | undefined): boolean {
    const host = hostOf(header);
    return host !== undefined && (this.#names.has(host) || isAddress(host));
  }

  /** A request without an origin is not that of a page. `host` is the host that the request names. */
  isOrigin(header: string | undefined, host: string | undefined): boolean {
    const origins = this.#origins;
    if (header === undefined || origins?.has('*') || origins?.has(header)) return true;
    const page = URL.parse(header)?.hostname;
    if (page === undefined) return false;
    if (this.#names.has(page) || loopback.has(page)) return true;
    return isAddress(page) && page === hostOf(host);
  }
}

/** The name or address in a Host header; undefined where the header has more than a host and a port. */
function hostOf(header: string | undefined): string | undefined {
  const url = URL.parse(`http://${header ?? '?'}`);
  return url !== null && url.href === `http://${url.host}/` ? url.hostname : undefined;
}

/** The same machine as `localhost`. */
const loopback: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]']);

function isAddress(hostname: string): boolean {
  return isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
}
