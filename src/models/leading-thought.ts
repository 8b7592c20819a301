/**
 * Models that think aloud begin with `<think>…</think>` where their server does not take it out. One
 * such block at the beginning is no part of the answer. Linear; what it keeps is what was pushed.
 */
export interface ThoughtFilter {
  /** What of the text so far can be said to belong to the answer now. */
  push(delta: string): string;
  /** The text has ended: what waited for the end of a block is text, for there is none. */
  end(): string;
}

const opening = '<think>';
const closing = '</think>';
/** Blanks before a block. */
const blanksMax = 100;

export function createThoughtFilter(): ThoughtFilter {
  let state: 'before' | 'within' | 'behind' | 'past' = 'before';
  let held = '';
  /** The end of what is held, in which the closing may have begun. */
  let tail = '';

  function begin(delta: string): string {
    held += delta;
    const begun = held.trimStart();
    if (begun.startsWith(opening)) {
      state = 'within';
      return close(begun.slice(opening.length));
    }
    if (opening.startsWith(begun) && held.length <= blanksMax) return '';
    return end();
  }

  function close(delta: string): string {
    tail += delta;
    const at = tail.indexOf(closing);
    if (at < 0) {
      tail = tail.slice(-closing.length);
      return '';
    }
    const rest = tail.slice(at + closing.length);
    [held, tail] = ['', ''];
    state = 'behind';
    return goOn(rest);
  }

  function goOn(delta: string): string {
    const text = delta.trimStart();
    if (text !== '') state = 'past';
    return text;
  }

  function end(): string {
    const text = held;
    [held, tail] = ['', ''];
    state = 'past';
    return text;
  }

  return {
    push(delta) {
      switch (state) {
        case 'before':
          return begin(delta);
        case 'within':
          held += delta;
          return close(delta);
        case 'behind':
          return goOn(delta);
        case 'past':
          return delta;
      }
    },
    end,
  };
}
