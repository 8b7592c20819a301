/**
 * Refuses words that hide the actor of a sentence: a reader of "nobody renews it" has to guess that the
 * worker would. Checks documents, comments, messages and titles of tests; quoted data of a single word,
 * inline code and `name=value` are left alone.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const refused = /\b(?:who(?:m)?ever|somebody|nobody|anybody|everybody)\b/gi;
/** Prompts: their words change only with a measurement of what models make of them. */
const prompts = /whoever it claims to be from|Nobody is here to talk to/g;
/** `code`, 'word', "word" and name=word: data, not prose. */
const quoted = /`[^`$]*`|(['"])[^\s'"]*\1|\w+=\w+/g;

export interface Finding {
  readonly line: number;
  readonly word: string;
}

/** The refused words of a text, by line. */
export function findRefused(text: string): Finding[] {
  return text.split('\n').flatMap((line, index) =>
    [...line.replace(prompts, '').replace(quoted, '').matchAll(refused)].map(([word]) => ({
      line: index + 1,
      word,
    })),
  );
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..');
  const folders =
    '{src,test,console,packages,bin,docs,deploy,examples,scripts}/**/*.{ts,tsx,md,mjs,js,yml,yaml}';
  const files = globSync([folders, '{README,ARCHITECTURE,CHANGELOG,CONTRIBUTING,SECURITY}.md'], {
    cwd: root,
    exclude: (path) => /node_modules|dist|check-words/.test(path),
  }).sort();
  const findings = files.flatMap((file) =>
    findRefused(readFileSync(join(root, file), 'utf8')).map(
      ({ line, word }) => `${file}:${line}  "${word}": name the actor (the worker, the caller, …)`,
    ),
  );
  for (const finding of findings) console.error(finding);
  if (findings.length === 0) console.log(`${files.length} files, every actor is named.`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}
