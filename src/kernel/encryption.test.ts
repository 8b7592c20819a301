import { createDecipheriv, randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { Cipher, DecryptionError } from './encryption.ts';

const key = randomBytes(32);
const cipher = new Cipher(key);
const context = 'acme/openai';

/** Sealed text whose bytes `change` has changed. */
function altered(sealed: string, change: (bytes: Buffer) => Buffer): string {
  const bytes = change(Buffer.from(sealed.slice('v1.'.length), 'base64url'));
  return `v1.${bytes.toString('base64url')}`;
}

function flipped(bytes: Buffer, at: number, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(at) ^ (1 << bit), at);
  return copy;
}

describe('a sealed text', () => {
  test.each(['sk-test', '', ' ', 'v1.', 'grüße 🏔️ \u2028 日本', 'x'.repeat(100_000)])(
    'is what was encrypted, decrypted again (case %#)',
    (text) => {
      expect(cipher.decrypt(cipher.encrypt(text, context), context)).toBe(text);
    },
  );

  test('is v1. and base64url of a nonce of 96 bits, the ciphertext and a tag of 128', () => {
    const sealed = cipher.encrypt('sk-test', context);

    expect(sealed).toMatch(/^v1\.[\w-]+$/);
    const bytes = Buffer.from(sealed.slice(3), 'base64url');
    expect(bytes).toHaveLength(12 + 'sk-test'.length + 16);
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12));
    decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-16));
    const text = decipher.update(bytes.subarray(12, -16), undefined, 'utf8');
    expect(text + decipher.final('utf8')).toBe('sk-test');
  });

  test('does not hold the text, and is never twice the same', () => {
    const all = Array.from({ length: 1_000 }, () => cipher.encrypt('sk-test', context));

    expect(new Set(all).size).toBe(1_000);
    expect(new Set(all.map((one) => one.slice(3, 3 + 16))).size).toBe(1_000);
    for (const sealed of all) {
      expect(Buffer.from(sealed.slice(3), 'base64url').includes('sk-test')).toBe(false);
    }
  });

  test('can be opened by another cipher of the same key', () => {
    expect(new Cipher(Buffer.from(key)).decrypt(cipher.encrypt('x', context), context)).toBe('x');
  });

  test('cannot be opened with another key', () => {
    const other = new Cipher(flipped(key, 31, 0));

    expect(() => other.decrypt(cipher.encrypt('x', context), context)).toThrow(DecryptionError);
  });

  test.each(['acme/anthropic', 'acme/openai ', 'Acme/openai', 'acme', ''])(
    'cannot be opened in another context: %j',
    (other) => {
      const sealed = cipher.encrypt('x', context);

      expect(() => cipher.decrypt(sealed, other)).toThrow(DecryptionError);
    },
  );

  test('cannot be opened when one bit of it is another, whichever', () => {
    const sealed = cipher.encrypt('sk-test', context);

    for (let at = 0; at < 12 + 'sk-test'.length + 16; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const changed = altered(sealed, (bytes) => flipped(bytes, at, bit));
        expect(() => cipher.decrypt(changed, context), `${at}.${bit}`).toThrow(DecryptionError);
      }
    }
  });

  test('cannot be opened when one character of it is another, whichever', () => {
    // Of every length modulo 3: the last character of base64url may have unused bits.
    for (const text of ['sk-tes', 'sk-test', 'sk-test1']) {
      const sealed = cipher.encrypt(text, context);
      for (let at = 0; at < sealed.length; at++) {
        for (const character of 'AQgw_-v. =+/\n') {
          if (sealed[at] === character) continue;
          const changed = sealed.slice(0, at) + character + sealed.slice(at + 1);
          expect(() => cipher.decrypt(changed, context), changed).toThrow(DecryptionError);
        }
      }
    }
  });

  test('cannot be opened when it is cut, lengthened, or of another version', () => {
    const sealed = cipher.encrypt('sk-test', context);
    const changed = [
      ...Array.from(sealed, (_, length) => sealed.slice(0, length)),
      ...['A', '=', '==', ' ', '\n', 'AAAA'].map((more) => sealed + more),
      altered(sealed, (bytes) => bytes.subarray(1)),
      altered(sealed, (bytes) => Buffer.concat([bytes, Buffer.alloc(16)])),
      sealed.replace('v1.', 'v2.'),
      sealed.replace('v1.', 'V1.'),
      sealed.slice(3),
      ` ${sealed}`,
      'sk-test',
      `v1.${Buffer.alloc(28).toString('base64url')}`,
    ];

    for (const one of changed) {
      expect(() => cipher.decrypt(one, context), one).toThrow(DecryptionError);
    }
  });

  test('cannot be made of the parts of two', () => {
    const [one, other] = ['sk-test', 'sk-TEST'].map((text) => cipher.encrypt(text, context));
    const bytesOfOther = Buffer.from((other as string).slice(3), 'base64url');
    const mixed = [12, 19].map((at) =>
      altered(one as string, (bytes) =>
        Buffer.concat([bytes.subarray(0, at), bytesOfOther.subarray(at)]),
      ),
    );

    for (const sealed of mixed) {
      expect(() => cipher.decrypt(sealed, context)).toThrow(DecryptionError);
    }
  });
});

test('the error is one clear sentence without the text, the key or the context', () => {
  const sealed = cipher.encrypt('sk-test', context);

  const errors = ['nowhere', `${context} `].map((other) => {
    try {
      return cipher.decrypt(other === 'nowhere' ? other : sealed, other);
    } catch (error) {
      return error;
    }
  });

  for (const error of errors) {
    expect((error as Error).message).toBe(
      'It cannot be decrypted: the key is another one, or what was encrypted was changed',
    );
    expect(inspect(error, { depth: 9 })).not.toMatch(/sk-test|acme\/openai/);
  }
});

test.each([0, 16, 24, 31, 33, 64])('a key of %d bytes is refused', (length) => {
  expect(() => new Cipher(Buffer.alloc(length))).toThrow(RangeError);
});

test('a cipher shows nothing of its key, and keeps it when the buffer is overwritten', () => {
  const own = Buffer.from(key);
  const made = new Cipher(own);
  const sealed = made.encrypt('x', context);

  own.fill(0);

  expect(made.decrypt(sealed, context)).toBe('x');
  expect(inspect(made, { depth: 9, showHidden: true })).not.toContain(key.toString('hex'));
  expect(JSON.stringify(made)).toBe('{}');
});
