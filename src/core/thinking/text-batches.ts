/**
 * Batches the text that a model streams into events: the first at once, then at most one every 100
 * milliseconds. A batch never ends in the middle of a character.
 */
import { endsMidCharacter } from '../../kernel/cut-text.ts';
import { cleanText } from '../../kernel/text.ts';

/** Milliseconds between two batches. */
const intervalMs = 100;
/** Characters at which a batch is passed on at once. */
const charactersMax = 4_096;

export class TextBatches {
  readonly #pass: (text: string) => void;
  #waiting = '';
  #timer: NodeJS.Timeout | undefined;
  #passedAt = Number.NEGATIVE_INFINITY;

  constructor(pass: (text: string) => void) {
    this.#pass = pass;
  }

  add(text: string): void {
    this.#waiting += text;
    const waitMs = this.#passedAt + intervalMs - performance.now();
    if (this.#waiting.length >= charactersMax) this.#flush();
    else if (this.#timer !== undefined) return;
    else if (waitMs > 0) this.#timer = setTimeout(() => this.#onInterval(), waitMs);
    else this.#flush();
  }

  /** Passes on the rest. */
  end(): void {
    clearTimeout(this.#timer);
    if (this.#waiting !== '') this.#pass(cleanText(this.#waiting));
    this.#waiting = '';
  }

  #onInterval(): void {
    this.#timer = undefined;
    this.#flush();
  }

  #flush(): void {
    this.#passedAt = performance.now();
    const waiting = this.#waiting;
    const end = endsMidCharacter(waiting) ? waiting.length - 1 : waiting.length;
    this.#waiting = waiting.slice(end);
    if (end > 0) this.#pass(cleanText(waiting.slice(0, end)));
  }
}
