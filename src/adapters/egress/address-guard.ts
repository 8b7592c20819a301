/**
 * Decides which addresses may be reached. An address of a private, local, reserved or other special
 * range is refused in every spelling, unless the operator listed it. Never resolves a name (specification: docs/decisions/webhooks.md).
 */

import { BlockList, isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { AllowList } from './allow-list.ts';

/** IPv4 ranges outside the public internet, and the address of Azure's host services. */
export const refusedIPv4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const;

/** The only IPv6 range that is assigned to the public internet … */
const publicIPv6 = '2000::/3';

/** … and the ranges in it that lead elsewhere (Teredo, documentation, 6to4, 6bone, AS112). */
export const refusedIPv6 = [
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3ffe::/16',
  '3fff::/20',
] as const;

const refused4 = refusedIPv4.map((range) => ipaddr.IPv4.parseCIDR(range));
const public6 = ipaddr.IPv6.parseCIDR(publicIPv6);
const refused6 = refusedIPv6.map((range) => ipaddr.IPv6.parseCIDR(range));

/** True when `address`, an IP address as text, is public or in the operator's list. */
export function isAllowedAddress(address: string, allowed: AllowList): boolean {
  const parsed = parseAddress(address);
  return parsed !== null && (isListed(parsed, allowed) || isPublic(parsed));
}

/** True when the operator's list names a range with this address in it. */
export function isListedAddress(address: string, allowed: AllowList): boolean {
  const parsed = parseAddress(address);
  return parsed !== null && isListed(parsed, allowed);
}

/**
 * The refused ranges for `net.connect`, which checks them again with another implementation.
 * The IPv6 ranges leave out ::ffff:0:0/96, because a BlockList looks IPv4 addresses up there.
 */
export function refusedAddresses(): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of refused4) list.addSubnet(network.toString(), prefix, 'ipv4');
  for (const [network, prefix] of refused6) list.addSubnet(network.toString(), prefix, 'ipv6');
  list.addRange('::', '::fffe:ffff:ffff', 'ipv6');
  list.addRange('0:0:0:1::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ipv6');
  list.addRange('::1:0:0:0', '::ffff:ffff:ffff:ffff', 'ipv6');
  list.addSubnet('4000::', 2, 'ipv6');
  list.addSubnet('8000::', 1, 'ipv6');
  return list;
}

/** Strict: ipaddr.js alone would also accept `127.1`. A mapped IPv6 address becomes its IPv4 address. */
function parseAddress(address: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  return isIP(address) === 0 ? null : ipaddr.process(address);
}

function isListed(address: ipaddr.IPv4 | ipaddr.IPv6, allowed: AllowList): boolean {
  return allowed.some(
    ([network, prefix]) => address.kind() === network.kind() && address.match(network, prefix),
  );
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address instanceof ipaddr.IPv4) return !refused4.some((range) => address.match(range));
  return address.match(public6) && !refused6.some((range) => address.match(range));
}
