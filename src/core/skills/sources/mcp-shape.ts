/** Validates the field `mcp` of a skill; every fault is the end of a sentence that begins with `mcp`. */
import { isObject } from '../../../kernel/json.ts';

/** What the protocol allows, without the suffix of a version. */
const namePattern = /^[A-Za-z0-9_.-]{1,90}$/;
const tasks: readonly unknown[] = [undefined, 'always', 'never', 'required'];
const contents: readonly unknown[] = [undefined, true, false, 'beside'];
const fields: readonly string[] = ['name', 'content', 'task'];

/** The fault of the value, or undefined. */
export function mcpFault(value: unknown): string | undefined {
  if (value === null) return undefined;
  if (!isObject(value)) return 'must be an object such as { name: "word_count" }';
  const unknown = Object.keys(value).find((field) => !fields.includes(field));
  if (unknown !== undefined) return `has the unknown field ${JSON.stringify(unknown.slice(0, 80))}`;
  const { name, content } = value;
  if (name !== undefined && (typeof name !== 'string' || !namePattern.test(name))) {
    return 'must have a name of 1 to 90 letters, digits, dots, hyphens and underscores';
  }
  if (!tasks.includes(value['task'])) return 'must have always, never or required as task';
  return contents.includes(content) ? undefined : 'must have true, false or beside as content';
}
