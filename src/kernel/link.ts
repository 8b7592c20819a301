/** Addresses that people are asked to open. */

/** An address with the host that it leads to, as a person has to see both. */
export interface Link {
  readonly url: string;
  readonly host: string;
}

const urlCharsMax = 2_048;

/**
 * Null for what no person is sent to: only https, and http on the same machine, without a user name, which poses as a
 * host. The host is in ASCII, so that no letter poses as another.
 */
export function linkOf(url: unknown): Link | null {
  if (typeof url !== 'string' || url.length > urlCharsMax) return null;
  const parsed = URL.parse(url);
  if (parsed === null || parsed.username !== '' || parsed.password !== '') return null;
  const { protocol, hostname, host, href } = parsed;
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback)) return null;
  return { url: href, host };
}
