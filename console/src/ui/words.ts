/** Whether a text has every word that is looked for, in any order and case; parts of words count. */
export function hasWords(text: string, wanted: string): boolean {
  const within = text.toLowerCase();
  return wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => within.includes(word));
}
