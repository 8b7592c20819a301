/** Comparisons in constant time, so that their duration reveals nothing about the secret. */
import { createHash, timingSafeEqual } from 'node:crypto';

/** Whether two texts are equal. The duration may only reveal their lengths. */
export function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Returns a check for a secret; its duration does not even reveal the length of the secret. */
export function secretCheck(secret: string): (given: string) => boolean {
  const expected = digest(secret);
  return (given) => timingSafeEqual(digest(given), expected);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
