/** The secret of the /admin endpoints: given, or made at the first start and kept in a file. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { loadOrMakeSecret, type StoredSecret } from './stored-secret.ts';

/** A new secret is shown once, at the start that made it. */
export type AdminSecret = StoredSecret;

const pattern = /^[\x21-\x7e]{16,}$/;
/** The required format of a secret, for error messages. */
export const adminSecretRule = 'at least 16 visible ASCII characters';

/** Whether a text may be the secret: long enough not to be guessed, and safe in a header. */
export function isAdminSecret(text: string): boolean {
  return pattern.test(text);
}

/** The given secret, or the one kept in `dataDir`, or a new one that is kept there with mode 0600. */
export function adminSecretOf(given: string | null, dataDir: string): AdminSecret {
  if (given !== null) return { value: given, isNew: false };
  const file = join(dataDir, 'admin-secret');
  const secret = loadOrMakeSecret(file, () => randomBytes(24).toString('base64url'));
  if (isAdminSecret(secret.value)) return secret;
  throw new Error(`${file} does not have ${adminSecretRule}: delete it, and a new secret is made`);
}
