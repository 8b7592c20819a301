import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hmacSha256, sha256, utf8Bytes, utf8Text } from './hashing.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const bytes = fc.uint8Array({ maxLength: 300 });

test('hashes are those of Node.js', () => {
  fc.assert(
    fc.property(bytes, bytes, (key, data) => {
      expect(hex(sha256(data))).toBe(createHash('sha256').update(data).digest('hex'));
      expect(hex(hmacSha256(key, data))).toBe(createHmac('sha256', key).update(data).digest('hex'));
    }),
  );
});

test('a text as UTF-8 is the text again, and other bytes are replaced', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(hex(utf8Bytes(text))).toBe(Buffer.from(text).toString('hex'));
      expect(utf8Text(utf8Bytes(text))).toBe(text.toWellFormed());
    }),
  );
  expect(utf8Text(Uint8Array.of(0x61, 0xff, 0xc3, 0x28))).toBe('a\ufffd\ufffd(');
});
