import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isListedAddress } from './address-guard.ts';
import { parseAllowList } from './allow-list.ts';

describe('the operator lists address ranges', () => {
  test.each([undefined, '', ' ', ' , ,'])('%j lists nothing', (text) => {
    expect(parseAllowList(text)).toEqual([]);
  });

  test('several ranges of both kinds are read, spaces and all', () => {
    const list = parseAllowList('127.0.0.0/8, fd00::/8 ,10.1.2.3');

    const listed = ['127.9.9.9', 'fd12::1', '10.1.2.3'];
    const others = ['128.0.0.1', 'fe80::1', '10.1.2.4', '::1'];
    expect(listed.filter((address) => !isListedAddress(address, list))).toEqual([]);
    expect(others.filter((address) => isListedAddress(address, list))).toEqual([]);
  });

  test('a mapped range means the IPv4 range inside', () => {
    const list = parseAllowList('::ffff:10.0.0.0/104');

    expect(isListedAddress('10.200.0.1', list)).toBe(true);
    expect(isListedAddress('::ffff:a00:1', list)).toBe(true);
    expect(isListedAddress('11.0.0.1', list)).toBe(false);
  });

  test.each([
    ['loopback', 'is not an address range'],
    ['127.1/8', 'is not an address range'],
    ['0x7f000001', 'is not an address range'],
    ['10.0.0.0/8/8', 'is not an address range'],
    ['fe80::1%eth0', 'is not an address range'],
    ['10.0.0.0/', 'needs a prefix length from 0 to 32'],
    ['10.0.0.0/33', 'needs a prefix length from 0 to 32'],
    ['10.0.0.0/-1', 'needs a prefix length'],
    ['10.0.0.0/08', 'needs a prefix length'],
    ['fd00::/129', 'needs a prefix length from 0 to 128'],
    ['10.0.0.1/8', 'did you mean 10.0.0.0/8?'],
    ['fd00::1/8', 'did you mean fd00::/8?'],
    ['::ffff:0:0/90', 'has bits behind its prefix'],
  ])('%j is refused, with the reason', (entry, reason) => {
    expect(() => parseAllowList(`127.0.0.0/8,${entry}`)).toThrow(reason);
    expect(() => parseAllowList(entry)).toThrow(entry);
  });

  test('any other text is read or refused with an Error, never worse', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), (text) => {
        try {
          parseAllowList(text);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          expect((error as Error).message).toMatch(/^"/);
        }
      }),
    );
  });
});
