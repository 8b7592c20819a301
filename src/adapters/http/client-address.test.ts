import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { describe, expect, test } from 'vitest';
import { ClientAddresses } from './client-address.ts';

const proxies = new BlockList();
proxies.addSubnet('10.0.0.0', 8);
proxies.addSubnet('fd00::', 8, 'ipv6');
const trusting = new ClientAddresses(proxies);

const proxy = '10.0.0.1';
const from = (remoteAddress: string | undefined, headers: Record<string, string> = {}) =>
  ({ socket: { remoteAddress }, headers }) as unknown as IncomingMessage;
const listed = (list: string) => trusting.of(from(proxy, { 'x-forwarded-for': list }));
const forwarded = (value: string) => trusting.of(from(proxy, { forwarded: value }));

test('without trusted proxies both headers are ignored', () => {
  const headers = { 'x-forwarded-for': '203.0.113.7', forwarded: 'for=203.0.113.7' };

  expect(new ClientAddresses(null).of(from(proxy, headers))).toBe(proxy);
});

test('a client that connects by itself cannot name another address', () => {
  const headers = { 'x-forwarded-for': '203.0.113.7', forwarded: 'for=203.0.113.7' };

  expect(trusting.of(from('198.51.100.4', headers))).toBe('198.51.100.4');
});

test('an IPv4 address that IPv6 carries is that IPv4 address', () => {
  expect(trusting.of(from('::ffff:198.51.100.4'))).toBe('198.51.100.4');
  expect(trusting.of(from('::ffff:10.0.0.1', { 'x-forwarded-for': '::ffff:203.0.113.7' }))).toBe(
    '203.0.113.7',
  );
});

test('a closed connection has no address', () => {
  expect(trusting.of(from(undefined, { 'x-forwarded-for': '203.0.113.7' }))).toBe('');
});

describe('x-forwarded-for: the first address from the right that is no trusted proxy', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['198.51.100.1, 203.0.113.7', '203.0.113.7'],
    ['198.51.100.1, 203.0.113.7, 10.0.0.2,10.0.0.3', '203.0.113.7'],
    ['203.0.113.7:4711', '203.0.113.7'],
    ['2001:DB8:0::0009', '2001:db8::9'],
    ['[2001:db8::9]:443', '2001:db8::9'],
    ['203.0.113.7, fd00::2', '203.0.113.7'],
    // All hops are proxies: the client is the first of them.
    ['10.0.0.3, 10.0.0.2', '10.0.0.3'],
  ])('%s', (list, client) => {
    expect(listed(list)).toBe(client);
  });

  test.each([
    '',
    ',',
    'unknown',
    '203.0.113.7, unknown',
    '203.0.113.7,',
    '203.0.113.7, 203.0.113',
    '203.0.113.7:',
    '203.0.113.7:123456',
    '[203.0.113.7]',
    'fe80::1%eth0',
    "' or 1=1 --",
  ])('a hop that is no address ends the search: %s', (list) => {
    expect(listed(list)).toBe(proxy);
  });

  test('what the client has written further left does not matter', () => {
    expect(listed('nonsense, 203.0.113.7, 10.0.0.2')).toBe('203.0.113.7');
    expect(listed(`${'1.1.1.1,'.repeat(100_000)} 203.0.113.7`)).toBe('203.0.113.7');
  });

  test('at most twenty hops are followed', () => {
    expect(listed(`203.0.113.7, ${Array(20).fill('10.0.0.2').join()}`)).toBe('10.0.0.2');
  });
});

describe('forwarded (RFC 7239): the same', () => {
  test.each([
    ['for=203.0.113.7', '203.0.113.7'],
    ['For="203.0.113.7:4711";proto=https;by=10.0.0.1', '203.0.113.7'],
    ['for=198.51.100.1, for=203.0.113.7;host="a,b;c", for=10.0.0.2', '203.0.113.7'],
    ['for="[2001:db8:cafe::17]:4711"', '2001:db8:cafe::17'],
    ['proto=https;for="\\203.0.113.7"', '203.0.113.7'],
  ])('%s', (value, client) => {
    expect(forwarded(value)).toBe(client);
  });

  test.each([
    '',
    'for',
    'for=',
    'for=unknown',
    'for=_hidden',
    'for=203.0.113.7,',
    'for="203.0.113.7',
    'for=203.0.113.7;;by=x',
    'for=[2001:db8::9]',
    // What a client has left open swallows nothing of its proxy's.
    'for="203.0.113.7, for="[2001:db8::9]"',
    `for=203.0.113.7;x=${'y'.repeat(5_000)}`,
    'proto=https',
  ])('a value that cannot be read is ignored: %s', (value) => {
    expect(forwarded(value)).toBe(proxy);
  });
});

test('two headers that name different clients are both ignored', () => {
  const by = (list: string, value: string) =>
    trusting.of(from(proxy, { 'x-forwarded-for': list, forwarded: value }));

  expect(by('203.0.113.7', 'for=203.0.113.7')).toBe('203.0.113.7');
  expect(by('203.0.113.7', 'for=198.51.100.1')).toBe(proxy);
});
