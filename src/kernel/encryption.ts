/**
 * Text kept so that only holders of one key can read it: AES-256-GCM with a random nonce of 96 bits.
 * What is sealed is bound to a context that is not kept with it: moved to where another context
 * holds, it cannot be opened. Sealed text is `v1.` and base64url of nonce, ciphertext and tag.
 */
import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from 'node:crypto';

/** Bytes of a key. */
export const encryptionKeyBytes = 32;

const algorithm = 'aes-256-gcm';
const version = 'v1.';
const nonceBytes = 12;
const tagBytes = 16;

export interface Cipher {
  /** Seals a well-formed text; never twice the same. */
  encrypt(text: string, context: string): string;
  /** The text that was sealed, or a DecryptionError. */
  decrypt(sealed: string, context: string): string;
}

/** What was to be decrypted is not what this key sealed for this context. Says nothing of either. */
export class DecryptionError extends Error {
  constructor() {
    super('It cannot be decrypted: the key is another one, or what was encrypted was changed');
    this.name = 'DecryptionError';
  }
}

/** A cipher for a key of 32 bytes, which is copied. */
export function createCipher(key: Buffer): Cipher {
  if (key.length !== encryptionKeyBytes) {
    throw new RangeError(`A key has ${encryptionKeyBytes} bytes, not ${key.length}`);
  }
  // Unlike a buffer, a key object shows nothing when it is printed.
  const secret = createSecretKey(key);
  const options = { authTagLength: tagBytes };

  return {
    encrypt(text, context) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, secret, nonce, options).setAAD(Buffer.from(context));
      const sealed = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()];
      return version + Buffer.concat(sealed).toString('base64url');
    },

    decrypt(sealed, context) {
      const bytes = bytesOf(sealed);
      const nonce = bytes.subarray(0, nonceBytes);
      const decipher = createDecipheriv(algorithm, secret, nonce, options)
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(-tagBytes));
      const opened = decipher.update(bytes.subarray(nonceBytes, -tagBytes));
      try {
        return Buffer.concat([opened, decipher.final()]).toString('utf8');
      } catch {
        throw new DecryptionError();
      }
    },
  };
}

/** Nonce, ciphertext and tag. */
function bytesOf(sealed: string): Buffer {
  const encoded = sealed.slice(version.length);
  const bytes = Buffer.from(encoded, 'base64url');
  // The decoder passes over what it does not know, so that different texts would be the same bytes.
  const isExact = sealed.startsWith(version) && bytes.toString('base64url') === encoded;
  if (!isExact || bytes.length < nonceBytes + tagBytes) throw new DecryptionError();
  return bytes;
}
