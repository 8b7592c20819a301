/** A text within single quotes, as a shell reads it. */
export const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;
