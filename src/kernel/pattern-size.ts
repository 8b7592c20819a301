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
    // What is named within braces is short; a search for their end would make many openings quadratic.
    const [escaped = char] = matched(/\\(?:[pPux]\{[^}]{0,60}\}|.)/sy) ?? [];
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
