/**
 * The regular expressions of schemas, run by RE2 so that every string takes linear time. Promises
 * ECMAScript's meaning for what both know, except that `.` matches all but the line feed and that
 * `\s`, `\d` and `\w` are ASCII. Refuses what needs backtracking (lookahead, lookbehind,
 * backreferences), repetitions above 1,000, and `\Q`, after which RE2 alone takes all as plain text.
 * Loaded at the first pattern.
 */
import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';

/** Ajv calls it; `toString` distinguishes patterns in its scope of compiled values. */
export class SchemaRegExp {
  readonly #pattern: string;
  readonly #compiled: RE2JS;

  constructor(pattern: string, compiled: RE2JS) {
    this.#pattern = pattern;
    this.#compiled = compiled;
  }

  /** Instructions of RE2. */
  get programSize(): number {
    return this.#compiled.programSize();
  }

  test(text: string): boolean {
    return this.#compiled.test(text);
  }

  toString(): string {
    return `/${this.#pattern}/`;
  }
}

const load = createRequire(import.meta.url);

/** Throws an Error whose message is the predicate of a sentence: `has a pattern that …`. */
export function schemaRegExp(pattern: string): SchemaRegExp {
  if (quotes(pattern)) {
    throw new Error(
      `has the pattern ${JSON.stringify(pattern)}, and \\Q has no meaning in JSON Schema`,
    );
  }
  const { RE2JS } = load('re2js') as typeof import('re2js');
  try {
    return new SchemaRegExp(pattern, RE2JS.compile(RE2JS.translateRegExp(pattern)));
  } catch (error) {
    throw new Error(`has the pattern ${JSON.stringify(pattern)}, ${reason(pattern, error)}`);
  }
}

// Ajv's option is a function with the source of that function; only standalone code reads it.
schemaRegExp.code = 'schemaRegExp';

function quotes(pattern: string): boolean {
  for (const [escaped] of pattern.matchAll(/\\./gs)) if (escaped === '\\Q') return true;
  return false;
}

function reason(pattern: string, error: unknown): string {
  if (/\(\?<?[=!]/.test(pattern)) return 'and lookaround cannot be matched in linear time';
  if (/\\(?:[1-9]|k<)/.test(pattern)) return 'and backreferences cannot be matched in linear time';
  const text = (error as Error).message.replace(/^error parsing regexp: /, '');
  return `which RE2 cannot read: ${text}`;
}
