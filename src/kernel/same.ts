/** Comparisons that take as long for what is nearly right as for what is not: their delay tells nothing. */
import { createHash, timingSafeEqual } from 'node:crypto';

/** Whether two texts are the same. Only their lengths may be learned. */
export function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Tells whether what it is given is the secret; not even the secret's length may be learned. */
export function secretCheck(secret: string): (given: string) => boolean {
  const expected = digest(secret);
  return (given) => timingSafeEqual(digest(given), expected);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
