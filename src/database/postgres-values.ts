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

/** A list as a value of one of PostgreSQL's array types. */
export function toArray(items: readonly unknown[]): string {
  let text = '{';
  for (let i = 0; i < items.length; i++) {
    if (i > 0) text += ',';
    const item = items[i];
    if (typeof item === 'string') text += quoted(item);
    else if (item === null || item === undefined) text += 'NULL';
    else text += String(item);
  }
  return `${text}}`;
}

function quoted(text: string): string {
  if (!text.includes('"') && !text.includes('\\')) return `"${text}"`;
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
