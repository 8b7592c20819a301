/** The escapes of JSON, which stand in a text that is JSON, or has some. */

/** Also those of JSON within JSON, whose backslashes are escaped. */
const escapes = /\\+(?:u[\dA-Fa-f]{4}|[bfnrt"/])?/g;

/** The text with a line end in place of each character of an escape, so that no letter of one stands before a word. */
export function withoutEscapes(text: string): string {
  return text.replace(escapes, (found) => '\n'.repeat(found.length));
}
