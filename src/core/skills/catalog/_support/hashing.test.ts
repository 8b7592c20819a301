import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRealms } from '../../../../adapters/sandbox/realms.ts';
import { hashingCode, utf8Bytes, utf8Text } from './hashing.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const bytes = fc.uint8Array({ maxLength: 300 });

/** The hash and the keyed hash of bytes, as the code in a realm computes them. */
const inRealm = createRealms({
  source: `${hashingCode}
    async function main(input) {
      const [key, data] = JSON.parse(input).map((bytes) => Uint8Array.from(bytes));
      const { subtle } = crypto;
      const digest = await subtle.digest('SHA-256', data);
      const signed = await subtle.sign('HMAC', await subtle.importKey('raw', key), data);
      return JSON.stringify([digest, signed].map((buffer) => new Uint8Array(buffer).toHex()));
    }`,
});

test('hashes are those of Node.js', () => {
  fc.assert(
    fc.property(bytes, bytes, (key, data) => {
      const answer = inRealm(JSON.stringify([[...key], [...data]])) as { value: string };

      expect(JSON.parse(answer.value)).toEqual([
        createHash('sha256').update(data).digest('hex'),
        createHmac('sha256', key).update(data).digest('hex'),
      ]);
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
