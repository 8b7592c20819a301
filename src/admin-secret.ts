/** The secret of the /admin endpoints: given, or made at the first start and kept in a file. */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from './kernel/directory.ts';

export interface AdminSecret {
  readonly value: string;
  /** Whether it was made just now: the one time that it is shown. */
  readonly isNew: boolean;
}

/** The given secret, or the one kept in `dataDir`, or a new one that is kept there with mode 0600. */
export function adminSecretOf(given: string | null, dataDir: string): AdminSecret {
  if (given !== null) return { value: given, isNew: false };
  const file = join(dataDir, 'admin-secret');
  const kept = readIfThere(file);
  if (kept !== null) return { value: kept, isNew: false };
  const value = randomBytes(24).toString('base64url');
  makeDirectory(dataDir);
  writeFileSync(file, `${value}\n`, { mode: 0o600, flag: 'wx' });
  return { value, isNew: true };
}

function readIfThere(file: string): string | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  if (text === '') throw new Error(`${file} is empty: delete it, and a new secret is made`);
  return text;
}
