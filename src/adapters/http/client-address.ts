/**
 * The address of a request's client: that of the connection, or, where that is one of TRUSTED_PROXIES, the first
 * address from the right of `x-forwarded-for` or `forwarded` (RFC 7239) that is none of them. What stands further left
 * was written by the client and is never read. A proxy may pass on a header that its client wrote, so two headers that
 * name different clients are both ignored.
 */
import type { IncomingMessage } from 'node:http';
import { type BlockList, isIP, isIPv6, SocketAddress } from 'node:net';

/** Characters of a header that are read. */
const headerMax = 4_096;
/** Proxies between a client and the platform. */
const hopsMax = 20;

export class ClientAddresses {
  readonly #proxies: BlockList | null;

  constructor(proxies: BlockList | null) {
    this.#proxies = proxies;
  }

  /** Whether an address, as `plainAddress` returns it, is that of a trusted proxy. */
  isProxy(address: string): boolean {
    if (this.#proxies === null || address === '') return false;
    return this.#proxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  }

  /** The address of the client; empty when the connection is closed already. */
  of({ socket, headers }: IncomingMessage): string {
    const peer = plainAddress(socket.remoteAddress);
    if (!this.isProxy(peer)) return peer;
    const list = headers['x-forwarded-for'];
    const named = [
      ...(typeof list === 'string' ? [this.#clientAmong(hopsOfList(list), peer)] : []),
      ...(headers.forwarded === undefined
        ? []
        : [this.#clientAmong(hopsOfForwarded(headers.forwarded), peer)]),
    ];
    const [client = peer] = named;
    return named.every((other) => other === client) ? client : peer;
  }

  /** Follows the hops from the right, as long as they are trusted proxies and can be read. */
  #clientAmong(hops: readonly string[], peer: string): string {
    let client = peer;
    for (const hop of hops.slice(-hopsMax).reverse()) {
      const address = addressOf(hop);
      if (address === null) return client;
      client = address;
      if (!this.isProxy(address)) return client;
    }
    return client;
  }
}

/** An address in its one form: an IPv4 address that IPv6 carries as IPv4; empty for none. */
export function plainAddress(address: string | undefined): string {
  const [withoutZone = ''] = (address ?? '').split('%', 1);
  if (!isIPv6(withoutZone)) return withoutZone;
  const { address: canonical } = new SocketAddress({ address: withoutZone, family: 'ipv6' });
  return canonical.replace(/^::ffff:(?=.*\.)/, '');
}

/** The address of a hop, which may have a port; null when it cannot be read. */
function addressOf(hop: string): string | null {
  const [, bracketed, plain] = /^\[([^\]]*)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/.exec(hop) ?? [];
  const address = bracketed ?? plain ?? hop;
  if (isIP(address) === 0 || address.includes('%')) return null;
  if (bracketed !== undefined && !isIPv6(bracketed)) return null;
  return plainAddress(address);
}

/** The last hops of `x-forwarded-for`; what is cut off stands on the client's side. */
function hopsOfList(value: string): string[] {
  return value
    .slice(-headerMax)
    .split(',')
    .map((hop) => hop.trim());
}

/** A parameter of `forwarded`, with what separates it from the next one. */
const forwardedPair =
  /[ \t]*([!#$%&'*+.^_`|~\w-]+)=(?:([!#$%&'*+.^_`|~\w-]+)|"((?:[^"\\]|\\.)*)")[ \t]*([;,]|$)/y;

/** The `for` of each element of `forwarded`, empty where it has none; no hops when the value is not one of RFC 7239. */
function hopsOfForwarded(value: string): string[] {
  if (value.length > headerMax) return [];
  const hops: string[] = [''];
  forwardedPair.lastIndex = 0;
  for (;;) {
    const [, name, token, quoted, end] = forwardedPair.exec(value) ?? [];
    if (name === undefined) return [];
    if (name.toLowerCase() === 'for') {
      hops[hops.length - 1] = token ?? quoted?.replace(/\\(.)/g, '$1') ?? '';
    }
    if (end === '') return hops;
    if (end === ',') hops.push('');
  }
}
