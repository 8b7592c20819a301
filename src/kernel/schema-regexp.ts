/**
 * The regular expressions of schemas, run by RE2 so that every string takes linear time. Promises
 * ECMAScript's meaning for what both know, except that `.` matches all but the line feed and that
 * `\s`, `\d` and `\w` are ASCII. Refuses what needs backtracking (lookahead, lookbehind,
 * backreferences) and repetitions above 1,000. Loaded at the first pattern.
 */
import { createRequire } from 'node:module';

/** What Ajv calls; `toString` tells patterns apart in its scope of compiled values. */
export interface SchemaRegExp {
  test(text: string): boolean;
  toString(): string;
  /** Instructions of RE2. */
  readonly programSize: number;
}

const load = createRequire(import.meta.url);

/** Throws an Error whose message is the predicate of a sentence: `has a pattern that …`. */
export function schemaRegExp(pattern: string): SchemaRegExp {
  const { RE2JS } = load('re2js') as typeof import('re2js');
  let compiled: InstanceType<typeof RE2JS>;
  try {
    compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch (error) {
    throw new Error(`has the pattern ${JSON.stringify(pattern)}, ${reason(pattern, error)}`);
  }
  return {
    test: (text) => compiled.test(text),
    toString: () => `/${pattern}/`,
    get programSize() {
      return compiled.programSize();
    },
  };
}

// Ajv's option is a function with the source of that function; only standalone code reads it.
schemaRegExp.code = 'schemaRegExp';

function reason(pattern: string, error: unknown): string {
  if (/\(\?<?[=!]/.test(pattern)) return 'and lookaround cannot be matched in linear time';
  if (/\\(?:[1-9]|k<)/.test(pattern)) return 'and backreferences cannot be matched in linear time';
  const text = (error as Error).message.replace(/^error parsing regexp: /, '');
  return `which RE2 cannot read: ${text}`;
}

/** How much work a pattern may be. */
export interface PatternSize {
  /** At least the number of parts that it has once its repetitions are written out, as RE2 does it: `[ab]{50}` has 50. */
  readonly parts: number;
  /** At least the number of parts that RE2 may have to try at one character. */
  readonly width: number;
}

/** Measures a pattern without compiling it, which takes time and memory for each part. Infinity for the worst. */
export function patternSize(pattern: string): PatternSize {
  /** Parts of the groups around the place. */
  const around: number[] = [];
  let parts = partsOfNothing;
  /** Of the piece before the place, which a repetition repeats. */
  let last = 0;
  /** Parts before the first choice: of those, RE2 tries only one at a character. */
  let certain = pattern.startsWith('^') && !pattern.includes('|') ? null : 0;
  const choose = (before: number) => {
    certain ??= before;
  };
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern.charAt(i);
    if (char === '(') {
      choose(parts);
      around.push(parts);
      [parts, last] = [2, 0];
    } else if (char === ')') {
      last = parts;
      parts += around.pop() ?? 0;
    } else if (char === '|') {
      [parts, last] = [parts + 1, 0];
    } else if ('*+?'.includes(char)) {
      choose(parts - last);
      [parts, last] = [parts + 1, last + 1];
    } else {
      const piece = pieceAt(pattern, i);
      if (piece.times > 0) {
        if (piece.isChoice) choose(parts - last);
        // RE2 has one part more for each repetition that may be left out.
        const repeated = last * piece.times + (piece.isChoice ? piece.times : 0);
        parts += repeated - last;
        last = repeated;
      } else {
        parts += piece.parts;
        last = piece.parts;
      }
      i += piece.length - 1;
    }
  }
  const all = around.reduce((sum, one) => sum + one, parts);
  return { parts: all, width: certain === null ? 1 : 1 + all - Math.max(certain, partsOfNothing) };
}

const partsOfNothing = 3;

/** A class of Unicode has hundreds of ranges. */
const classParts = 50;

interface Piece {
  readonly length: number;
  readonly parts: number;
  /** Of a repetition, else 0. */
  readonly times: number;
  /** Whether the repetition may end at several places. */
  readonly isChoice?: boolean;
}

/** A character, an escape, a class or a repetition. */
function pieceAt(pattern: string, at: number): Piece {
  const matched = (expression: RegExp) => {
    expression.lastIndex = at;
    return expression.exec(pattern);
  };
  const char = pattern.charAt(at);
  if (char === '{') {
    const [repetition = char, least, comma, most = ''] = matched(/\{(\d+)(?:(,)(\d*))?\}/y) ?? [];
    if (least === undefined) return { length: 1, times: 0, parts: 1 };
    const times = Math.max(Number(least) + (comma === undefined ? 0 : 1), Number(most), 1);
    const isChoice = comma !== undefined && Number(least) !== Number(most || Number.NaN);
    return { length: repetition.length, times, parts: 0, isChoice };
  }
  if (char === '\\') {
    const [escaped = char] = matched(/\\(?:[pPux]\{[^}]*\}|.)/sy) ?? [];
    return { length: escaped.length, times: 0, parts: /^\\p/i.test(escaped) ? classParts : 1 };
  }
  if (char === '[') {
    // In ECMAScript `[]` is a class of nothing; what follows it is counted as parts, which are not fewer.
    const [members = char] = matched(/\[(?:\^?\]|(?:\\.|[^\]\\])*\]?)/sy) ?? [];
    const wide = members.match(/\\p/gi)?.length ?? 0;
    const parts = 1 + Math.floor(members.length / 16) + wide * classParts;
    return { length: members.length, times: 0, parts };
  }
  return { length: 1, times: 0, parts: 1 };
}

/** The parts of all expressions together that are kept for strangers' patterns, each of which may take much memory. */
const keptPartsMax = 20_000;
/** The parts of an expression times the characters that it reads before it is made anew: its states take memory. */
const keptReadMax = 2_000_000;

interface Kept {
  readonly regexp: SchemaRegExp;
  readonly parts: number;
  read: number;
}

const kept = new Map<string, Kept>();
let keptParts = 0;

/**
 * Compiles a stranger's pattern, unless it is kept. All kept ones of a process together take some tens of MB. Throws
 * like `schemaRegExp`.
 */
export function keepPattern(pattern: string, parts: number): Kept {
  const found = kept.get(pattern) ?? { regexp: schemaRegExp(pattern), parts, read: 0 };
  // The least recently used is the first.
  drop(pattern);
  kept.set(pattern, found);
  keptParts += parts;
  for (const oldest of kept.keys()) {
    if (keptParts <= keptPartsMax || oldest === pattern) break;
    drop(oldest);
  }
  return found;
}

/** Whether a stranger's pattern matches. */
export function matchesPattern(pattern: string, parts: number, text: string): boolean {
  const found = keepPattern(pattern, parts);
  found.read += parts * text.length;
  if (found.read > keptReadMax) drop(pattern);
  return found.regexp.test(text);
}

function drop(pattern: string): void {
  const found = kept.get(pattern);
  if (found === undefined) return;
  kept.delete(pattern);
  keptParts -= found.parts;
}
