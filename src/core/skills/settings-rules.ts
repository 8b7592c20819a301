/** The rules of settings that hold wherever skills run: on a platform and in tests. */
import type { SkillSetting } from './definition.ts';

/** UTF-8 bytes of a value. */
export const valueBytesMax = 8_192;
/** Characters of the shortest secret: a shorter one could not be told from ordinary text in what a run says. */
export const secretCharsMin = 4;

/** Whether a run cannot start without a value that is given. */
export function isRequired({ required, default: byDefault }: SkillSetting): boolean {
  return required !== false && byDefault === undefined;
}
