import { createHash } from './create-hash.ts';

/** A short digest of a text that is the same in every attempt. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
