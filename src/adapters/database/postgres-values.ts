/** Values as PostgreSQL reads them: each as a text, a list as one text in braces. */

/** A value as it is sent: its text, or bytes. */
export type Value = string | Buffer | null;

export function toValue(value: unknown): Value {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return toArray(value);
  if (Buffer.isBuffer(value)) return value;
  if (typeof value === 'object') throw new TypeError('An object is no value of a statement.');
  return String(value);
}

/** An escape of JSON that PostgreSQL does not know, or what looks like one. */
const jsonEscape = /\\[^"\\]/;

/** A list as a value of one of PostgreSQL's array types. */
export function toArray(items: readonly unknown[]): string {
  // JSON quotes texts as PostgreSQL does, control characters excepted, in one pass over all of them.
  const json = JSON.stringify(items);
  if (json.includes('\\') && jsonEscape.test(json)) return escaped(items);
  return `{${json.slice(1, -1)}}`;
}

function escaped(items: readonly unknown[]): string {
  const quoted = items.map((item) =>
    typeof item === 'string' ? `"${item.replace(/["\\]/g, '\\$&')}"` : String(item ?? null),
  );
  return `{${quoted.join()}}`;
}
