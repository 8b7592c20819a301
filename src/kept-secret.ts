/** Secrets that the platform makes for itself at its first start and keeps in a file. */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeDirectory } from './kernel/directory.ts';

export interface KeptSecret {
  readonly value: string;
  /** Whether it was made just now. */
  readonly isNew: boolean;
}

/**
 * The secret kept in `file`, without space around it, or the one that `make` gives, kept there with
 * mode 0600 from now on. An empty file and one that cannot be read are errors: a secret that was in
 * use is never replaced silently.
 */
export function keptSecret(file: string, make: () => string): KeptSecret {
  const kept = readIfThere(file);
  if (kept !== null) return { value: kept, isNew: false };
  const value = make();
  makeDirectory(dirname(file));
  // On disk before anything that depends on it is.
  writeFileSync(file, `${value}\n`, { mode: 0o600, flag: 'wx', flush: true });
  return { value, isNew: true };
}

function readIfThere(file: string): string | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw new Error(`${file} cannot be read: ${message}`, { cause: error });
  }
  if (text === '') throw new Error(`${file} is empty: delete it, and a new secret is made`);
  return text;
}
