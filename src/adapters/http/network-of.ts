/** Which addresses count as one client, for limits by address. */
import { isIPv6 } from 'node:net';

/** Groups of an IPv6 address that belong to one subscriber: 64 bits. */
const networkGroups = 4;

/** An IPv4 address, or the /64 network of an IPv6 address. */
export function networkOf(address: string): string {
  if (!isIPv6(address) || address.toLowerCase().startsWith('::ffff:')) return address;
  const [before = '', after] = address.split('::');
  const groups = before === '' ? [] : before.split(':');
  const behind = after === undefined || after === '' ? [] : after.split(':');
  const zeros = Array.from({ length: 8 - groups.length - behind.length }, () => '0');
  return [...groups, ...zeros, ...behind].slice(0, networkGroups).join(':');
}
