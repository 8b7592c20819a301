/** The formats of JSON Schema, each of which takes time that is linear in the text. */
import { createRequire } from 'node:module';
import type { Format } from 'ajv';

/** Characters of a string that the format `url` looks at; longer ones do not match it. */
const urlLengthMax = 2_048;

// createRequire instead of import: a process that validates nothing saves the time.
const load = createRequire(import.meta.url);
let formats: Readonly<Record<string, Format>> | undefined;

/** The formats by their names; loaded at the first use. */
export function linearFormats(): Readonly<Record<string, Format>> {
  formats ??= loadFormats();
  return formats;
}

function loadFormats(): Readonly<Record<string, Format>> {
  const { fullFormats } = load(
    'ajv-formats/dist/formats.js',
  ) as typeof import('ajv-formats/dist/formats.js');
  const url = fullFormats.url as RegExp;
  // The one format whose time grows with the square of the length.
  return { ...fullFormats, url: (text: string) => text.length <= urlLengthMax && url.test(text) };
}
