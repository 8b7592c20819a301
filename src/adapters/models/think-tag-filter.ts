/**
 * Removes the reasoning that some models write at the start of their text, as `<think>…</think>`, where
 * their server does not remove it. Only one block at the start is removed. The work is linear in the
 * text, and at most the pushed text is held.
 *
 * `extractReasoningMiddleware` of the package `ai` is not used: it also removes tags that the answer itself
 * quotes, loses a block that never closes, and needs the whole package in memory.
 */
export interface ThinkTagFilter {
  /** The text that is known by now to belong to the answer. */
  push(delta: string): string;
  /** Ends the text. Returns what was held: a block that never closed is text. */
  end(): string;
}

const opening = '<think>';
const closing = '</think>';
/** White space that may stand before the block. */
const blanksMax = 100;

export function createThinkTagFilter(): ThinkTagFilter {
  let state: 'before' | 'inside' | 'after' | 'text' = 'before';
  let held = '';
  /** The last characters held, where the closing tag may have begun. */
  let tail = '';

  function readOpening(delta: string): string {
    held += delta;
    const start = held.trimStart();
    if (start.startsWith(opening)) {
      state = 'inside';
      return readClosing(start.slice(opening.length));
    }
    if (opening.startsWith(start) && held.length <= blanksMax) return '';
    return end();
  }

  function readClosing(delta: string): string {
    tail += delta;
    const at = tail.indexOf(closing);
    if (at < 0) {
      tail = tail.slice(-closing.length);
      return '';
    }
    const rest = tail.slice(at + closing.length);
    [held, tail] = ['', ''];
    state = 'after';
    return skipBlanks(rest);
  }

  function skipBlanks(delta: string): string {
    const text = delta.trimStart();
    if (text !== '') state = 'text';
    return text;
  }

  function end(): string {
    const text = held;
    [held, tail] = ['', ''];
    state = 'text';
    return text;
  }

  return {
    push(delta) {
      switch (state) {
        case 'before':
          return readOpening(delta);
        case 'inside':
          held += delta;
          return readClosing(delta);
        case 'after':
          return skipBlanks(delta);
        case 'text':
          return delta;
      }
    },
    end,
  };
}
