/** Secrets that the platform makes at its first start and stores in a file. */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeDirectory } from '../../kernel/directory.ts';

export interface StoredSecret {
  readonly value: string;
  /** Whether it was made just now. */
  readonly isNew: boolean;
}

/**
 * The secret in `file`, trimmed; where there is no file, the result of `make`, which is stored there
 * with mode 0600. An empty or unreadable file is an error: a secret in use is never replaced silently.
 */
export function loadOrMakeSecret(file: string, make: () => string): StoredSecret {
  const kept = readIfThere(file);
  if (kept !== null) return { value: kept, isNew: false };
  const value = make();
  makeDirectory(dirname(file));
  // On disk before any data that depends on it.
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
