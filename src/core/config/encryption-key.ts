/**
 * The key that stored credentials are encrypted with: given, or made at the first start and kept in a
 * file. It is never shown. If it is lost, the credentials have to be stored again.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { encryptionKeyBytes } from '../../kernel/encryption.ts';
import { loadOrMakeSecret } from './stored-secret.ts';

const expected = `${encryptionKeyBytes} random bytes as 64 hex digits or as base64`;

const hex = /^[\da-f]{64}$/i;
/** Either alphabet. The last digit has two spare bits; a key with one of them set is mistyped. */
const base64 = /^([\w-]{42}|[A-Za-z\d+/]{42})[AEIMQUYcgkosw048]=?$/;

/** Reads the text of `ENCRYPTION_KEY`: its bytes, or the expected format, for the end of a sentence. */
export function readEncryptionKey(text: string): { value: Buffer } | { expected: string } {
  if (hex.test(text)) return { value: Buffer.from(text, 'hex') };
  if (base64.test(text)) return { value: Buffer.from(text, 'base64') };
  return { expected };
}

/**
 * The given key, or where the platform is embedded the one kept in `dataDir`, or a new one that is
 * kept there with mode 0600 and reported to `onMade`. Null in a cluster without a given key, whose
 * processes would make one each.
 */
export function encryptionKeyOf(
  given: Buffer | null,
  dataDir: string,
  isEmbedded: boolean,
  onMade: (file: string) => void = () => {},
): Buffer | null {
  if (given !== null) return given;
  if (!isEmbedded) return null;
  const file = join(dataDir, 'encryption-key');
  const make = () => randomBytes(encryptionKeyBytes).toString('hex');
  const { value: text, isNew } = loadOrMakeSecret(file, make);
  if (isNew) onMade(file);
  const read = readEncryptionKey(text);
  if ('value' in read) return read.value;
  throw new Error(
    `${file} holds no encryption key (${read.expected}): put it back, or delete the file and store the credentials again`,
  );
}
