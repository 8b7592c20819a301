/** Cleans texts for storage. */

/** The text without characters that databases refuse: well-formed Unicode without NUL. */
export function cleanText(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed();
}

/** A clean text on one line; empty for any value that is not a string. */
export function oneLine(value: unknown): string {
  return typeof value === 'string' ? cleanText(value).replace(/\s+/g, ' ').trim() : '';
}

/** At most `length` characters, without half a surrogate pair at the end. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const end = text.slice(0, length);
  return end.isWellFormed() ? end : end.slice(0, -1);
}
