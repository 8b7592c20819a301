const opening = '<think>';
const closing = '</think>';
/** White space that may stand before the block. */
const blanksMax = 100;

/**
 * Removes the reasoning that some models write at the start of their text, as `<think>…</think>`, where
 * their server does not remove it. Only one block at the start is removed. The work is linear in the
 * text, and at most the pushed text is held.
 *
 * `extractReasoningMiddleware` of the package `ai` is not used: it also removes tags that the answer itself
 * quotes, loses a block that never closes, and needs the whole package in memory.
 */
export class ThinkTagFilter {
  #state: 'before' | 'inside' | 'after' | 'text' = 'before';
  #held = '';
  /** The last characters held, where the closing tag may have begun. */
  #tail = '';

  /** The text that is known by now to belong to the answer. */
  push(delta: string): string {
    switch (this.#state) {
      case 'before':
        return this.#readOpening(delta);
      case 'inside':
        this.#held += delta;
        return this.#readClosing(delta);
      case 'after':
        return this.#skipBlanks(delta);
      case 'text':
        return delta;
    }
  }

  /** The text of which it is not known yet whether it belongs to the answer. */
  get held(): string {
    return this.#held;
  }

  /** Ends the text. Returns what was held: a block that never closed is text. */
  end(): string {
    const text = this.#held;
    [this.#held, this.#tail] = ['', ''];
    this.#state = 'text';
    return text;
  }

  #readOpening(delta: string): string {
    this.#held += delta;
    const start = this.#held.trimStart();
    if (start.startsWith(opening)) {
      this.#state = 'inside';
      return this.#readClosing(start.slice(opening.length));
    }
    if (opening.startsWith(start) && this.#held.length <= blanksMax) return '';
    return this.end();
  }

  #readClosing(delta: string): string {
    this.#tail += delta;
    const at = this.#tail.indexOf(closing);
    if (at < 0) {
      this.#tail = this.#tail.slice(-closing.length);
      return '';
    }
    const rest = this.#tail.slice(at + closing.length);
    [this.#held, this.#tail] = ['', ''];
    this.#state = 'after';
    return this.#skipBlanks(rest);
  }

  #skipBlanks(delta: string): string {
    const text = delta.trimStart();
    if (text !== '') this.#state = 'text';
    return text;
  }
}
