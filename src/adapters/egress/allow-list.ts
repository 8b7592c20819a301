/**
 * The operator's list of ranges that may be reached besides public addresses
 * (WEBHOOK_ALLOW_CIDRS, SKILLS_ALLOW_CIDRS), and its parser.
 */

import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** An address range as ipaddr.js matches it: the network address and the prefix length. */
export type Cidr = readonly [network: ipaddr.IPv4 | ipaddr.IPv6, prefix: number];

export type AllowList = readonly Cidr[];

/** The prefix under which IPv6 carries IPv4 addresses (::ffff:a.b.c.d). */
const mappedPrefix = 96;

/**
 * Reads a comma-separated list such as `127.0.0.0/8, fd00::/8`; a bare address stands for itself.
 * Throws an Error that names the first invalid entry; the caller adds the name of the variable.
 */
export function parseAllowList(text: string | undefined): AllowList {
  return (text ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .map(parseCidr);
}

function parseCidr(entry: string): Cidr {
  const [host = '', bits, ...rest] = entry.split('/');
  // ipaddr.js also accepts 127.1 and 0x7f000001, which are most likely mistakes in a list of ranges.
  const version = host.includes('%') ? 0 : isIP(host);
  if (version === 0 || rest.length > 0) {
    throw new Error(`"${entry}" is not an address range; write it like 10.0.0.0/8 or fd00::/8`);
  }
  const longest = version === 4 ? 32 : 128;
  if (bits !== undefined && !/^(0|[1-9]\d{0,2})$/.test(bits)) {
    throw new Error(`"${entry}" needs a prefix length from 0 to ${longest} after the slash`);
  }
  const prefix = bits === undefined ? longest : Number(bits);
  if (prefix > longest) {
    throw new Error(`"${entry}" needs a prefix length from 0 to ${longest} after the slash`);
  }
  return unmapped(entry, withoutHostBits(entry, ipaddr.parse(host), prefix));
}

/** Refuses bits after the prefix, because they are most likely a mistake. */
function withoutHostBits(entry: string, address: ipaddr.IPv4 | ipaddr.IPv6, prefix: number): Cidr {
  const written = `${address.toString()}/${prefix}`;
  const network =
    address.kind() === 'ipv4'
      ? ipaddr.IPv4.networkAddressFromCIDR(written)
      : ipaddr.IPv6.networkAddressFromCIDR(written);
  if (network.toString() !== address.toString()) {
    throw new Error(
      `"${entry}" has bits behind its prefix; did you mean ${network.toString()}/${prefix}?`,
    );
  }
  return [network, prefix];
}

/** Mapped addresses are checked as IPv4 addresses, so a mapped range becomes an IPv4 range as well. */
function unmapped(entry: string, [network, prefix]: Cidr): Cidr {
  if (!(network instanceof ipaddr.IPv6) || !network.isIPv4MappedAddress()) return [network, prefix];
  if (prefix < mappedPrefix) {
    throw new Error(`"${entry}" mixes IPv4 and IPv6; list the two ranges separately`);
  }
  return [network.toIPv4Address(), prefix - mappedPrefix];
}
