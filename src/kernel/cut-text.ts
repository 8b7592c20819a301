/** Beginnings of texts, in whole characters. The unit of a bound is in the name: UTF-16 code units, or bytes of UTF-8. */

/** The first `max` code units; one fewer where that is the middle of a character. */
export function firstUnits(text: string, max: number): string {
  const first = text.slice(0, max);
  const isWhole = first.length === text.length || !endsMidCharacter(first);
  return isWhole ? first : first.slice(0, -1);
}

/** At most `max` code units; of a longer text the beginning, with an ellipsis. */
export function cutToUnits(text: string, max: number): string {
  return text.length <= max ? text : `${firstUnits(text, max - 1)}…`;
}

/** At most `max` bytes: the beginning of a longer text, with a note at its end that counts among them. */
export function cutToBytes(text: string, max: number, note = ''): string {
  if (Buffer.byteLength(text) <= max) return text;
  const bytes = Buffer.from(text);
  let end = max - Buffer.byteLength(note);
  // Every byte of a character but its first begins with the bits 10.
  while ((bytes.readUInt8(end) & 0xc0) === 0x80) end -= 1;
  return `${bytes.toString('utf8', 0, end)}${note}`;
}

/** Whether a text ends with the first half of a character. */
export function endsMidCharacter(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}
