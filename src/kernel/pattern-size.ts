/**
 * How much work a regular expression may be, measured without compiling it: compiling takes time and memory for each
 * of its parts. Linear in the length of the pattern.
 */

/** How much work a pattern may be. */
export interface PatternSize {
  /** At least the number of parts that it has once its repetitions are written out, as RE2 does it: `[ab]{50}` has 50. */
  readonly parts: number;
  /** At least the number of parts that RE2 may have to try at one character. */
  readonly width: number;
}

/** Measures a pattern without compiling it, which takes time and memory for each part. Infinity for the worst. */
export function patternSize(pattern: string): PatternSize {
  const isFolded = foldingFlag.test(pattern);
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
      const flags = matchedAt(/\(\?[\w-]*\)/y, pattern, i);
      if (flags !== null) {
        // It is no part: a repetition after it repeats the piece before it.
        i += flags[0].length - 1;
        continue;
      }
      choose(parts);
      around.push(parts);
      [parts, last] = [partsOfGroup, 0];
    } else if (char === ')') {
      last = parts;
      parts += around.pop() ?? 0;
    } else if (char === '|') {
      [parts, last] = [parts + partsOfBranch, 0];
    } else if ('*+?'.includes(char)) {
      choose(parts - last);
      [parts, last] = [parts + partsOfChoice, last + partsOfChoice];
    } else {
      const piece = pieceAt(pattern, i, isFolded);
      if (piece.times > 0) {
        if (piece.isChoice) choose(parts - last);
        // RE2 has one part more for each repetition that may be left out, and two for the last.
        const repeated = last * piece.times + (piece.isChoice ? piece.times + 1 : 0);
        parts += repeated - last;
        last = repeated;
      } else {
        parts += piece.parts;
        last = piece.parts;
      }
      i += piece.length - 1;
    }
    // Larger numbers are not exact, and the difference of two infinite ones is none.
    if (!(parts < partsCounted)) return { parts: Infinity, width: Infinity };
  }
  const all = around.reduce((sum, one) => sum + one, parts);
  return { parts: all, width: certain === null ? 1 : 1 + all - Math.max(certain, partsOfNothing) };
}

const partsCounted = 1e9;
const partsOfNothing = 3;
/** Two ends, and one part for a group of nothing. */
const partsOfGroup = 3;
/** Of a further branch, which may be empty. */
const partsOfBranch = 2;
/** Of `*`, `+` and `?`: a piece that may be empty has two with `*`. */
const partsOfChoice = 2;
/** A class of Unicode has hundreds of ranges. */
const classParts = 50;

/** `(?i)` and `(?s-i:`, from which on RE2 looks for the other cases of each character of a class. */
const foldingFlag = /\(\?[\w-]*i/;
/** Characters of a class whose other cases take as much time as a part. */
const foldedPerPart = 64;
/** The last character that has another case. */
const highestFolded = 0x1e943;

interface Piece {
  readonly length: number;
  readonly parts: number;
  /** Of a repetition, else 0. */
  readonly times: number;
  /** Whether the repetition may end at several places. */
  readonly isChoice?: boolean;
}

/** A character, an escape, a class or a repetition. */
function pieceAt(pattern: string, at: number, isFolded: boolean): Piece {
  const matched = (expression: RegExp) => matchedAt(expression, pattern, at);
  const char = pattern.charAt(at);
  if (char === '{') {
    const [repetition = char, least, comma, most = ''] = matched(/\{(\d+)(?:(,)(\d*))?\}/y) ?? [];
    if (least === undefined) return { length: 1, times: 0, parts: 1 };
    const times = Math.max(Number(least) + (comma === undefined ? 0 : 1), Number(most), 1);
    const isChoice = comma !== undefined && Number(least) !== Number(most || Number.NaN);
    return { length: repetition.length, times, parts: 0, isChoice };
  }
  if (char === '\\') {
    // What is named within braces is short; a search for their end would make many openings quadratic. Anything but
    // digits after `\u{` and `\x{` is a part of its own.
    const [escaped = char] = matched(/\\(?:[pP]\{[^}]{0,60}\}|[ux]\{[\da-fA-F]{1,60}\}|.)/sy) ?? [];
    return { length: escaped.length, times: 0, parts: /^\\p/i.test(escaped) ? classParts : 1 };
  }
  if (char === '[') {
    // In ECMAScript `[]` is a class of nothing; what follows it is counted as parts, which are not fewer.
    const [members = char] = matched(/\[(?:\^?\]|(?:\\.|[^\]\\])*\]?)/sy) ?? [];
    const wide = members.match(/\\p/gi)?.length ?? 0;
    const parts = 1 + Math.floor(members.length / 16) + wide * classParts;
    return {
      length: members.length,
      times: 0,
      parts: parts + (isFolded ? foldedParts(members) : 0),
    };
  }
  return { length: 1, times: 0, parts: 1 };
}

/** For the ranges of a class, each of which is at most as wide as the highest character. */
function foldedParts(members: string): number {
  let highest = 0xff;
  for (const char of members) highest = Math.max(highest, char.codePointAt(0) ?? 0);
  for (const [, braced, four] of members.matchAll(/\\(?:[ux]\{([\da-f]+)\}|u([\da-f]{4}))/gi)) {
    highest = Math.max(highest, Number.parseInt(braced ?? four ?? '', 16));
  }
  const ranges = members.split('-').length - 1;
  return ranges * Math.ceil(Math.min(highest, highestFolded) / foldedPerPart);
}

function matchedAt(expression: RegExp, text: string, at: number): RegExpExecArray | null {
  expression.lastIndex = at;
  return expression.exec(text);
}
