import { type JsonSchema, rulesOf } from '../skills/schema.ts';

/** Limits beyond this are not met by filling in a form. */
const saidMax = 1_000;

/** Id of the element with a field's hint or error. */
export const aboutId = (id: string): string => `${id}__about`;

/** What to know of a field: its description, and the bounds within which it is. */
export function hintOf(schema: object): string | undefined {
  const { description, enum: _, pattern: __, maxLength, ...rest } = schema as JsonSchema;
  const isShort = typeof maxLength === 'number' && maxLength <= saidMax;
  const rules = rulesOf(isShort ? { ...rest, maxLength } : { ...rest, minLength: undefined });
  const said = rules.length === 0 ? '' : `${rules.join(', ')}.`;
  const all = [description, said.charAt(0).toUpperCase() + said.slice(1)].filter(Boolean).join(' ');
  return all === '' ? undefined : all;
}
