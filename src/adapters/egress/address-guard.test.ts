import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { describe, expect, test } from 'vitest';
import {
  isAllowedAddress,
  isListedAddress,
  refusedAddresses,
  refusedIPv4,
  refusedIPv6,
} from './address-guard.ts';
import { parseAllowList } from './allow-list.ts';

const isPublic = (address: string) => isAllowedAddress(address, []);

/** An address of the range, with the bits behind the prefix taken at random. */
function inRange(range: string): fc.Arbitrary<string> {
  const [network, prefix] = ipaddr.parseCIDR(range);
  const bytes = network.toByteArray();
  return fc
    .uint8Array({ minLength: bytes.length, maxLength: bytes.length })
    .map((random) => text(bytes.map((byte, i) => mixed(byte, random[i] ?? 0, prefix - 8 * i))));
}

/** The first `bits` bits of `fixed`, the rest of `random`. */
function mixed(fixed: number, random: number, bits: number): number {
  const mask = bits >= 8 ? 0 : bits <= 0 ? 0xff : 0xff >> bits;
  return (fixed & ~mask & 0xff) | (random & mask);
}

function text(bytes: readonly number[]): string {
  return ipaddr.fromByteArray([...bytes]).toString();
}

function mapped(address: string): string {
  return ipaddr.IPv4.parse(address).toIPv4MappedAddress().toString();
}

const anyIPv4 = fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => text([...bytes]));
const anyIPv6 = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => text([...bytes]));

describe('addresses that are not the public internet are refused', () => {
  test.each([
    '0.0.0.0',
    '10.0.0.1',
    '100.64.0.1',
    '100.100.100.200',
    '127.0.0.1',
    '127.255.255.255',
    '168.63.129.16',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.192',
    '192.0.2.1',
    '192.31.196.1',
    '192.52.193.1',
    '192.88.99.1',
    '192.168.1.1',
    '192.175.48.1',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::7f00:1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:a9fe:a9fe',
    '64:ff9b::7f00:1',
    '64:ff9b:1::1',
    '100::1',
    '100:0:0:1::1',
    '2001::1',
    '2001:1ff:ffff::1',
    '2001:db8::1',
    '2002:7f00:1::1',
    '2620:4f:8000::1',
    '3ffe::1',
    '3fff::1',
    '4000::1',
    '5f00::1',
    '8000::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
  ])('%s', (address) => {
    expect(isPublic(address)).toBe(false);
  });

  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '168.63.129.15',
    '168.63.129.17',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.1',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '::ffff:8.8.8.8',
    '::ffff:808:808',
    '2001:200::1',
    '2001:4860:4860::8888',
    '2600::1',
    '2606:4700::1111',
    '3ffd::1',
    '3fff:1000::1',
  ])('but %s may be reached', (address) => {
    expect(isPublic(address)).toBe(true);
  });

  test.each([
    '',
    'localhost',
    '127.1',
    '0x7f000001',
    '2130706433',
    '017700000001',
    '[::1]',
    ' 8.8.8.8',
  ])('%j is no address and is refused', (address) => {
    expect(isPublic(address)).toBe(false);
  });

  test.each(refusedIPv4)('every address of %s, also inside IPv6', (range) => {
    fc.assert(
      fc.property(inRange(range), (address) => {
        expect(isPublic(address)).toBe(false);
        expect(isPublic(mapped(address))).toBe(false);
      }),
    );
  });

  test.each([
    ...refusedIPv6,
    '::/96',
    '64:ff9b::/96',
    'fc00::/7',
    'fe80::/10',
    'ff00::/8',
    '4000::/2',
  ])('every address of %s', (range) => {
    fc.assert(fc.property(inRange(range), (address) => !isPublic(address)));
  });

  test('whatever the text, the answer is yes or no', () => {
    fc.assert(fc.property(fc.string(), (address) => typeof isPublic(address) === 'boolean'));
  });

  test('an address inside IPv6 is judged as the IPv4 that it is', () => {
    fc.assert(fc.property(anyIPv4, (address) => isPublic(mapped(address)) === isPublic(address)));
  });

  test("Node's own block list judges every address alike", () => {
    const second = refusedAddresses();
    const near = fc.oneof(...[...refusedIPv4, ...refusedIPv6].map(inRange));

    fc.assert(
      fc.property(fc.oneof(anyIPv4, anyIPv6, near, anyIPv4.map(mapped)), (address) => {
        const family = address.includes(':') ? 'ipv6' : 'ipv4';
        expect(isPublic(address)).toBe(!second.check(address, family));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("an operator's list opens what it names and nothing else", () => {
  const list = parseAllowList('127.0.0.0/8,fd00::/8');

  test.each(['127.0.0.1', '::ffff:127.0.0.1', 'fd00::1', '8.8.8.8'])('%s is allowed', (address) => {
    expect(isAllowedAddress(address, list)).toBe(true);
  });

  test.each(['::1', '::7f00:1', '10.0.0.1', 'fc00::1', '64:ff9b::7f00:1'])(
    '%s stays refused',
    (address) => {
      expect(isAllowedAddress(address, list)).toBe(false);
    },
  );

  test('all of IPv4 is not all of IPv6, nor the other way round', () => {
    expect(isAllowedAddress('::1', parseAllowList('0.0.0.0/0'))).toBe(false);
    expect(isAllowedAddress('127.0.0.1', parseAllowList('::/0'))).toBe(false);
    expect(isAllowedAddress('::ffff:127.0.0.1', parseAllowList('::/0'))).toBe(false);
    expect(isAllowedAddress('::ffff:127.0.0.1', parseAllowList('0.0.0.0/0'))).toBe(true);
  });

  test('a list never takes away what is public', () => {
    fc.assert(
      fc.property(fc.oneof(anyIPv4, anyIPv6), (address) => {
        const allowed = isAllowedAddress(address, list);
        expect(allowed).toBe(isPublic(address) || isListedAddress(address, list));
      }),
    );
  });
});
