import { deflateRawSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { archiveOf } from '../../../../../test/support/zip-archive.ts';
import { unzip } from './zip.ts';

const text = 'hello '.repeat(100);

test('entries are unpacked by name, stored or compressed', () => {
  const archive = archiveOf([
    { name: 'stored.txt', content: text, method: 'stored' },
    { name: 'ümläut/packed.txt', content: text },
    { name: 'empty', content: '' },
  ]);

  const entries = unzip(archive, 10_000);

  expect([...entries.keys()]).toEqual(['stored.txt', 'ümläut/packed.txt', 'empty']);
  expect([...entries.values()].map(String)).toEqual([text, text, '']);
});

test('an archive without entries is empty', () => {
  expect(unzip(archiveOf([]), 10).size).toBe(0);
});

describe('an archive that unpacks to more than is allowed is refused', () => {
  test.each([
    ['one entry', [{ name: 'a', content: Buffer.alloc(2_000_000) }]],
    ['a stored one', [{ name: 'a', content: Buffer.alloc(2_000_000), method: 'stored' as const }]],
    [
      'many entries',
      Array.from({ length: 20 }, (_, i) => ({ name: `${i}`, content: Buffer.alloc(100_000) })),
    ],
    [
      'one that lies about its size',
      [{ name: 'a', content: Buffer.alloc(2_000_000), claimedBytes: 10 }],
    ],
  ])('%s', (_what, entries) => {
    expect(() => unzip(archiveOf(entries), 1_000_000)).toThrow('unpacks to more than is allowed');
  });
});

describe('an archive that is damaged, or could be read in two ways, is refused', () => {
  const sound = archiveOf([{ name: 'a', content: text }]);

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['no archive', Buffer.from('PK\x03\x04 and nothing more')],
    ['cut off', sound.subarray(0, -30)],
    ['something in front', Buffer.concat([Buffer.from('xxxx'), sound])],
    ['a second end', Buffer.concat([sound, sound.subarray(-22)])],
    ['bytes that do not unpack', Buffer.from(sound).fill(0xff, 31, 36)],
    ['a directory that lies elsewhere', changed(sound, sound.length - 6, 0)],
    ['more entries than there are', changed(sound, sound.length - 12, 2)],
  ])('%s', (_what, archive) => {
    expect(() => unzip(archive, 10_000)).toThrow('The document is damaged');
  });

  test('an encrypted entry', () => {
    const archive = archiveOf([{ name: 'a', content: text, flags: 1 }]);

    expect(() => unzip(archive, 10_000)).toThrow('The document is encrypted');
  });
});

test('whatever is changed in an archive, it is read or refused with words', () => {
  const sound = archiveOf([
    { name: 'a', content: text },
    { name: 'b', content: deflateRawSync(text) },
  ]);
  for (let i = 0; i < sound.length; i++) {
    for (const value of [0x00, 0x7f, 0xff]) {
      try {
        unzip(changed(sound, i, value), 100_000);
      } catch (error) {
        expect((error as Error).message).toMatch(/^The document /);
      }
    }
  }
});

function changed(archive: Buffer, offset: number, value: number): Buffer {
  const copy = Buffer.from(archive);
  copy[offset] = value;
  return copy;
}
