/**
 * A model's words as they come, gathered into pieces worth an event each: the first at once, then one
 * at most every tenth of a second. A piece never ends inside a character.
 */
import { cleanText } from '../kernel/text.ts';

/** Milliseconds between two pieces. */
const everyMs = 100;
/** Characters at which a piece is passed on at once. */
const charactersMax = 4_096;

export interface Deltas {
  add(text: string): void;
  /** Passes on what is left. */
  end(): void;
}

export function createDeltas(pass: (text: string) => void): Deltas {
  let waiting = '';
  let timer: NodeJS.Timeout | undefined;
  let isQuiet = true;

  function flush(): void {
    const end = endsInside(waiting) ? waiting.length - 1 : waiting.length;
    const piece = waiting.slice(0, end);
    waiting = waiting.slice(end);
    if (piece !== '') pass(cleanText(piece));
  }

  function later(): void {
    timer = undefined;
    isQuiet = waiting === '';
    if (isQuiet) return;
    flush();
    timer = setTimeout(later, everyMs);
  }

  return {
    add(text) {
      waiting += text;
      if (isQuiet) {
        isQuiet = false;
        flush();
        timer = setTimeout(later, everyMs);
      } else if (waiting.length >= charactersMax) flush();
    },
    end() {
      clearTimeout(timer);
      if (waiting !== '') pass(cleanText(waiting));
      waiting = '';
    },
  };
}

/** Whether a text ends with the first half of a character. */
export function endsInside(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}
