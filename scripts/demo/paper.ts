/** What the demo writes. */

const shownCharacters = 500;

export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** A value as JSON, indented under what it belongs to. */
export function sayValue(value: unknown): void {
  const text = shortened(JSON.stringify(value, null, 2), shownCharacters);
  say(text.replaceAll(/^/gm, '   '));
}

export function shortened(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max)}… (${text.length} characters)` : text;
}
