/** JSON that has not been validated. */
import { isDeeperThan } from './text.ts';

export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value as an object; null when it is not one. */
export function objectOf(value: unknown): Json | null {
  return isObject(value) ? value : null;
}

/** Levels of a long JSON text that is parsed. */
const levelsMax = 1_000;
/** Characters of a text that is parsed however deep it is. */
const shortCharsMax = 65_536;

/** The parsed text; undefined when it is not JSON, or nested too deeply. */
export function parsed(text: string): unknown {
  if (text.length > shortCharsMax && isDeeperThan(text, levelsMax)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Whether a value has more than `max` members and items, where 16 characters of a name count as one. Looks at few more
 * than that.
 */
export function hasMoreNodes(value: unknown, max: number): boolean {
  const open: unknown[] = [value];
  let count = 0;
  while (open.length > 0) {
    const node = open.pop();
    if (node === null || typeof node !== 'object') continue;
    const members = Object.values(node);
    count += members.length;
    if (!Array.isArray(node)) for (const name in node) count += name.length >> 4;
    if (count > max) return true;
    for (const member of members) open.push(member);
  }
  return false;
}
