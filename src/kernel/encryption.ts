/**
 * Encryption of text with one key: AES-256-GCM with a random nonce of 96 bits. The ciphertext is bound to
 * a context that is not stored with it: when it is moved to another context, it cannot be decrypted. The
 * format is `v1.` and base64url of nonce, ciphertext and tag.
 */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

/** Bytes of a key. */
export const encryptionKeyBytes = 32;

const algorithm = 'aes-256-gcm';
/** What encrypted text begins with. */
export const encryptedPrefix = 'v1.';
const nonceBytes = 12;
const tagBytes = 16;
const options = { authTagLength: tagBytes };

/** The text was not encrypted with this key for this context. The message names neither. */
export class DecryptionError extends Error {
  constructor() {
    super('It cannot be decrypted: the key is another one, or what was encrypted was changed');
    this.name = 'DecryptionError';
  }
}

export class Cipher {
  /** Unlike a buffer, a key object shows nothing when it is printed. */
  readonly #secret: KeyObject;

  /** For a key of 32 bytes, which is copied. */
  constructor(key: Buffer) {
    if (key.length !== encryptionKeyBytes) {
      throw new RangeError(`A key has ${encryptionKeyBytes} bytes, not ${key.length}`);
    }
    this.#secret = createSecretKey(key);
  }

  /** Encrypts a well-formed text; the result differs each time. */
  encrypt(text: string, context: string): string {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv(algorithm, this.#secret, nonce, options);
    cipher.setAAD(Buffer.from(context));
    const sealed = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()];
    return encryptedPrefix + Buffer.concat(sealed).toString('base64url');
  }

  /** Decrypts a text; throws DecryptionError. */
  decrypt(sealed: string, context: string): string {
    const bytes = bytesOf(sealed);
    const nonce = bytes.subarray(0, nonceBytes);
    const decipher = createDecipheriv(algorithm, this.#secret, nonce, options)
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(-tagBytes));
    const opened = decipher.update(bytes.subarray(nonceBytes, -tagBytes));
    try {
      return Buffer.concat([opened, decipher.final()]).toString('utf8');
    } catch {
      throw new DecryptionError();
    }
  }
}

/** Nonce, ciphertext and tag. */
function bytesOf(sealed: string): Buffer {
  const encoded = sealed.slice(encryptedPrefix.length);
  const bytes = Buffer.from(encoded, 'base64url');
  // The decoder skips unknown characters, so different texts would give the same bytes.
  const isExact = sealed.startsWith(encryptedPrefix) && bytes.toString('base64url') === encoded;
  if (!isExact || bytes.length < nonceBytes + tagBytes) throw new DecryptionError();
  return bytes;
}
