import { cleanText } from './text.ts';

/** Characters of a file's name. */
const nameMax = 200;

/** A name for a file: the last part of a path, as clean text; `file` where nothing is left. */
export function fileName(given: string | null): string {
  const last = (given ?? '').split(/[\\/]/).at(-1) ?? '';
  const clean = cleanText(last)
    .replace(/\p{Cc}/gu, '')
    .trim();
  return [...clean].slice(0, nameMax).join('') || 'file';
}
