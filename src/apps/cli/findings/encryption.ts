/** Whether the encryption key opens what is stored under it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SealedValue } from '../../../adapters/database/sealed-values.ts';
import type { Config } from '../../../core/config/config.ts';
import { readEncryptionKey } from '../../../core/config/encryption-key.ts';
import { Cipher, encryptedPrefix } from '../../../kernel/encryption.ts';
import { type Finding, fault, warning } from './finding.ts';

const check = 'encryption';

/** No finding where the key's file is damaged: the check of the data directory reports that. */
export function checkSealed(
  config: Pick<Config, 'encryptionKey' | 'dataDir' | 'isEmbedded'>,
  sealed: readonly SealedValue[],
): Finding[] {
  const { encryptionKey, dataDir, isEmbedded } = config;
  const file = join(dataDir, 'encryption-key');
  const hasFile = isEmbedded && existsSync(file);
  const key = encryptionKey ?? (hasFile ? keyIn(file) : null);
  if (key !== null) {
    const origin = encryptionKey === null ? `the key in ${file}` : 'ENCRYPTION_KEY';
    return checkKey(new Cipher(key), origin, sealed);
  }
  if (hasFile) return [];
  if (sealed.length > 0) {
    const message = 'Stored secrets are encrypted, and their key is gone';
    const place = isEmbedded ? `restore ${file}, or set ENCRYPTION_KEY` : 'set ENCRYPTION_KEY';
    return [fault(check, message, `${place} to the one they were stored under`)];
  }
  if (isEmbedded) return [];
  const message = 'ENCRYPTION_KEY is not set, so signing secrets are stored as they are';
  return [warning(check, message, 'set it, the same for every process (docs/configuration.md)')];
}

function keyIn(file: string): Buffer | null {
  const read = readEncryptionKey(readFileSync(file, 'utf8').trim());
  return 'value' in read ? read.value : null;
}

function checkKey(cipher: Cipher, origin: string, sealed: readonly SealedValue[]): Finding[] {
  const encrypted = sealed.filter(({ text }) => text.startsWith(encryptedPrefix));
  const unusable = encrypted.filter((value) => !isUsable(cipher, value)).length;
  if (unusable === 0) return [];
  const message = `${origin} does not decrypt ${unusable} of ${encrypted.length} stored secrets`;
  const remedy = 'put the key back that they were stored under, or store them again';
  return [fault(check, message.charAt(0).toUpperCase() + message.slice(1), remedy)];
}

function isUsable(cipher: Cipher, { text, context }: SealedValue): boolean {
  try {
    cipher.decrypt(text, context);
    return true;
  } catch {
    return false;
  }
}
