/** What differs between two prompts of a dialogue. Pure. */
import type { Json } from '../../../kernel/json.ts';

/** A field that is new, gone or changed. */
interface ChangedValue {
  readonly field: string;
  /** Absent where the field is new. */
  readonly before?: unknown;
  /** Absent where the field is gone. */
  readonly after?: unknown;
}

/** A list with other elements than before: those between its beginning and its end that stayed. */
interface ChangedList {
  readonly field: string;
  /** Elements at its beginning that are as before. */
  readonly same: number;
  readonly removed: unknown[];
  readonly added: unknown[];
  /** Elements at its end that are as before. */
  readonly same_at_end: number;
}

export interface PromptDifference {
  /** Fields that are as before. */
  readonly same: string[];
  readonly changed: (ChangedValue | ChangedList)[];
}

/** The difference between a prompt and the one before, which is empty where there is none. */
export function differenceOf(before: Json, after: Json): PromptDifference {
  const same: string[] = [];
  const changed: (ChangedValue | ChangedList)[] = [];
  for (const field of new Set([...Object.keys(after), ...Object.keys(before)])) {
    const [was, is] = [before[field], after[field]];
    if (JSON.stringify(was) === JSON.stringify(is)) same.push(field);
    else if (Array.isArray(is) && (was === undefined || Array.isArray(was))) {
      changed.push({ field, ...listDifference(was ?? [], is) });
    } else {
      changed.push({
        field,
        ...(field in before && { before: was }),
        ...(field in after && { after: is }),
      });
    }
  }
  return { same, changed };
}

function listDifference(before: readonly unknown[], after: readonly unknown[]) {
  const was = before.map((one) => JSON.stringify(one));
  const is = after.map((one) => JSON.stringify(one));
  const shorter = Math.min(was.length, is.length);
  let same = 0;
  while (same < shorter && was[same] === is[same]) same += 1;
  let atEnd = 0;
  while (atEnd < shorter - same && was.at(-1 - atEnd) === is.at(-1 - atEnd)) atEnd += 1;
  return {
    same,
    removed: before.slice(same, before.length - atEnd),
    added: after.slice(same, after.length - atEnd),
    same_at_end: atEnd,
  };
}
