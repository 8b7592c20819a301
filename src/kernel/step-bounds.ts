/** The bounds of steps and waits, which the executor and the platform check. Characters are code points. */
import { dayMs } from './clock.ts';

/** Characters of the name of a step, a wait or an event. */
export const stepNameCharsMax = 200;
/** Characters of the title of an approval. */
export const titleCharsMax = 200;
/** Characters of the key of an event. */
export const eventKeyCharsMax = 500;
/** The longest wait. */
export const waitMaxMs = 365 * dayMs;

/** Whether a text has more characters than `max`. */
export function isLongerThan(text: string, max: number): boolean {
  // A character has at most two code units, so a longer text is not counted.
  if (text.length <= max) return false;
  if (text.length > 2 * max) return true;
  let chars = 0;
  for (let at = 0; at < text.length; at += 1) {
    chars += 1;
    // The second code unit belongs to the same character.
    if ((text.codePointAt(at) ?? 0) > 0xffff) at += 1;
  }
  return chars > max;
}
