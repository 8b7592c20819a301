/** Whether a text has every word that is looked for, in any order and case; parts of words count. */
export function hasWords(text: string, query: string): boolean {
  const within = text.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => within.includes(word));
}
