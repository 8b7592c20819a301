/** The secret of the /admin endpoints: given, or made at the first start and kept in a file. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type KeptSecret, keptSecret } from './kept-secret.ts';

/** New is shown: once, at the start that made it. */
export type AdminSecret = KeptSecret;

/** The given secret, or the one kept in `dataDir`, or a new one that is kept there with mode 0600. */
export function adminSecretOf(given: string | null, dataDir: string): AdminSecret {
  if (given !== null) return { value: given, isNew: false };
  return keptSecret(join(dataDir, 'admin-secret'), () => randomBytes(24).toString('base64url'));
}
