/** Answers of a model that are useful only when they are complete. */

import { SkillError } from '../../definition.ts';

/**
 * The text of a complete, non-empty answer. Otherwise throws a SkillError that is not retryable, because
 * a repeated request would get the recorded answer. `remedy` says what to do about a cut answer.
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
