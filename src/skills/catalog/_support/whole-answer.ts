/** Answers of a model that are of use only as a whole. */

import { SkillError } from '../../definition.ts';

/**
 * The text, when the model came to its end and said anything. Throws a SkillError that is not
 * retryable, for asking again would bring the same; `remedy` says what to do about one that is cut.
 */
export function wholeAnswer(
  text: string,
  { isCut, kind, remedy }: { isCut: boolean; kind: string; remedy: string },
): string {
  if (isCut) {
    const message = `The model answered with a ${kind} that breaks off: ${remedy}`;
    throw new SkillError(message, { retryable: false });
  }
  if (text === '') {
    throw new SkillError(`The model answered with an empty ${kind}`, { retryable: false });
  }
  return text;
}
