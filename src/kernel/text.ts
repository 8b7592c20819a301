/**
 * Checks strings and JSON values before they are stored, so that both databases treat them alike (docs/decisions/json-and-lists.md): well-formed Unicode, no NUL, finite numbers, bounded nesting.
 */

export const nestingMax = 64;

/** Well-formed Unicode without NUL. */
export function isCleanText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** Text that both databases can store: other characters are replaced. */
export function cleanText(text: string): string {
  return isCleanText(text) ? text : text.replaceAll('\0', '\ufffd').toWellFormed();
}

/** Marks of one letter that are kept: as many as Unicode allows in a stream, and more than any language has. */
const longMarks = /([\p{M}\uff9e\uff9f]{30})[\p{M}\uff9e\uff9f]+/gu;

/**
 * A normal form of Unicode, in linear time: sorting the marks of one letter takes the square of their number, so further
 * ones are left out.
 */
export function normalized(text: string, form: 'NFC' | 'NFKD'): string {
  return text.replace(longMarks, '$1').normalize(form);
}

/** Why a JSON text is refused, or null. The text must be valid JSON. Linear in its length. */
export function jsonTextFault(text: string): string | null {
  const { depth, mayOverflow } = scan(text);
  if (depth > nestingMax) return `is nested deeper than ${nestingMax} levels`;
  // Only an escape can add a NUL or a lone surrogate to valid UTF-8.
  if (text.includes('\\u') && !everyLeaf(JSON.parse(text), isCleanLeaf)) {
    return 'contains a NUL character or a lone surrogate';
  }
  if (mayOverflow && !everyLeaf(JSON.parse(text), isFiniteLeaf)) {
    return 'contains a number that is too large';
  }
  return null;
}

/**
 * Whether a JSON text nests deeper than `max`. To be asked before a stranger's text is parsed: a megabyte of `[` would take
 * the parser fifty times its size, and the stack of what comes after.
 */
export function isDeeperThan(json: string, max: number): boolean {
  let depth = 0;
  return someOutsideStrings(json, (c) => {
    if (c === 0x5b || c === 0x7b) depth++;
    else if (c === 0x5d || c === 0x7d) depth--;
    return depth > max;
  });
}

/** Whether a JSON text has more than `max` members and items, as many as commas outside of strings. */
export function hasMoreMembers(json: string, max: number): boolean {
  let commas = 0;
  return someOutsideStrings(json, (c) => c === 0x2c && ++commas > max);
}

/** Whether `passes` holds for one of the code units of a JSON text outside of its strings. */
function someOutsideStrings(json: string, passes: (c: number) => boolean): boolean {
  let inString = false;
  for (let i = 0; i < json.length; i++) {
    const c = json.charCodeAt(i);
    if (c === 0x22) inString = !inString;
    else if (inString && c === 0x5c) i++;
    else if (!inString && passes(c)) return true;
  }
  return false;
}

/** A number of fewer digits and without an exponent is below the largest double. */
const digitsMax = 308;

/** Outside strings: how deep brackets nest, and whether some number may be beyond a double. */
function scan(text: string): { depth: number; mayOverflow: boolean } {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  let digits = 0;
  let mayOverflow = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 0x5c) i++;
      else if (c === 0x22) inString = false;
    } else if (c >= 0x30 && c <= 0x39) {
      if (++digits > digitsMax) mayOverflow = true;
    } else {
      if (digits > 0 && (c === 0x65 || c === 0x45)) mayOverflow = true;
      digits = 0;
      if (c === 0x22) inString = true;
      else if (c === 0x7b || c === 0x5b) deepest = Math.max(deepest, ++depth);
      else if (c === 0x7d || c === 0x5d) depth--;
    }
  }
  return { depth: deepest, mayOverflow };
}

/** Whether all scalars of a JSON value pass, including its keys. */
function everyLeaf(value: unknown, passes: (leaf: unknown) => boolean): boolean {
  if (Array.isArray(value)) return value.every((item) => everyLeaf(item, passes));
  if (value === null || typeof value !== 'object') return passes(value);
  return Object.entries(value).every(([key, item]) => passes(key) && everyLeaf(item, passes));
}

const isCleanLeaf = (leaf: unknown) => typeof leaf !== 'string' || isCleanText(leaf);
const isFiniteLeaf = (leaf: unknown) => typeof leaf !== 'number' || Number.isFinite(leaf);

/** JSON with sorted keys: equal values give equal text. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([k, v]) => `${JSON.stringify(k)}:${canonicalJson(v)}`).join(',')}}`;
}

/** Linear in the size of the items: equal items have equal canonical texts. */
export function areUnique(items: readonly unknown[]): boolean {
  return items.length < 2 || new Set(items.map(canonicalJson)).size === items.length;
}
