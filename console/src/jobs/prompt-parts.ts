/** The parts of a prompt, in the order in which a person reads them. No I/O. */
import type { JobStep, StepPrompt } from '../api/jobs.ts';

type Difference = NonNullable<StepPrompt['difference']>;

export interface PromptPart {
  readonly key: string;
  readonly title: string;
  readonly change: 'added' | 'removed' | 'same';
  readonly value?: unknown;
  /** Elements that are as before and are not shown. */
  readonly count?: number;
}

/** Why there is none, in words. */
export const notKeptWords: Record<Exclude<JobStep['prompt'], 'kept' | null>, string> = {
  off: 'It is not kept: the agent’s setting “What was sent” is off, or the organization’s.',
  cap_reached: 'It is not kept: the organization had as many bytes of prompts as it may.',
  too_large: 'It is not kept: it has more than 4 MiB.',
  not_sent: 'Nothing was sent: no request could be made of the call.',
  expired: 'It is not kept any more: its days have passed.',
  earlier_job: 'The job that this one goes on from made the call: it is shown there.',
};

/** What is new; with the whole body also what is as before. */
export function partsOfPrompt(
  { same, changed }: Difference,
  body: Record<string, unknown> | null,
): PromptPart[] {
  const parts: PromptPart[] = [];
  for (const one of changed) {
    if (one.added === undefined) parts.push(...partsOfValue(one));
    else parts.push(...partsOfList(one, body?.[one.field]));
  }
  for (const field of same) {
    const value = body?.[field];
    const known = { key: field, title: `${field}, as before`, change: 'same' } as const;
    if (body !== null) parts.push({ ...known, title: field, value });
    else parts.push({ ...known, count: 1 });
  }
  return parts;
}

type Changed = Difference['changed'][number];

function partsOfValue({ field, before, after }: Changed): PromptPart[] {
  const was = { key: `${field} before`, title: field, change: 'removed', value: before } as const;
  const is = { key: `${field} after`, title: field, change: 'added', value: after } as const;
  return [...(before === undefined ? [] : [was]), ...(after === undefined ? [] : [is])];
}

function partsOfList(
  { field, same = 0, removed, added, same_at_end: atEnd = 0 }: Changed,
  whole: unknown,
) {
  const list = Array.isArray(whole) ? (whole as unknown[]) : null;
  const from = (first: number, count: number) => unchanged(field, first, count, list);
  const numbered = (values: readonly unknown[] = [], change: 'added' | 'removed'): PromptPart[] =>
    values.map((value, i) => ({
      key: `${field} ${change} ${i}`,
      title: titleOf(field, same + i, value),
      change,
      value,
    }));
  return [
    ...from(0, same),
    ...numbered(removed, 'removed'),
    ...numbered(added, 'added'),
    ...from(same + (added?.length ?? 0), atEnd),
  ];
}

function unchanged(
  field: string,
  first: number,
  count: number,
  list: readonly unknown[] | null,
): PromptPart[] {
  if (count === 0) return [];
  if (list === null) {
    const title = `${field}: ${count} as before`;
    return [{ key: `${field} same ${first}`, title, change: 'same', count }];
  }
  return list.slice(first, first + count).map((value, i) => ({
    key: `${field} same ${first + i}`,
    title: titleOf(field, first + i, value),
    change: 'same',
    value,
  }));
}

/** With the role of a message, or the name of a tool. */
function titleOf(field: string, index: number, value: unknown): string {
  const { role, type, name } = (typeof value === 'object' && value !== null ? value : {}) as Record<
    string,
    unknown
  >;
  const word = [role, name, type].find((one) => typeof one === 'string' && one.length <= 64);
  return word === undefined
    ? `${field} ${index + 1}`
    : `${field} ${index + 1}: ${shownText(String(word))}`;
}

/** Characters of one part that are shown: the rest would hold up the page. */
const shownMax = 100_000;

/** JSON whose characters are all to be seen: those that turn or hide text are written out. */
export function shownJson(value: unknown): string {
  const json = JSON.stringify(value, null, 2) ?? 'undefined';
  const cut =
    json.length > shownMax ? `${json.slice(0, shownMax)}\n[cut: ${json.length} characters]` : json;
  return shownText(cut);
}

const hidden = /[\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
const shownText = (text: string) =>
  text.replace(hidden, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
