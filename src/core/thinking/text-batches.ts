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

export function createTextBatcher(pass: (text: string) => void) {
  let waiting = '';
  let timer: NodeJS.Timeout | undefined;
  let passedAt = Number.NEGATIVE_INFINITY;

  function flush(): void {
    passedAt = performance.now();
    const end = endsMidCharacter(waiting) ? waiting.length - 1 : waiting.length;
    const batch = waiting.slice(0, end);
    waiting = waiting.slice(end);
    if (batch !== '') pass(cleanText(batch));
  }

  function onInterval(): void {
    timer = undefined;
    flush();
  }

  return {
    add(text: string): void {
      waiting += text;
      const waitMs = passedAt + intervalMs - performance.now();
      if (waiting.length >= charactersMax) flush();
      else if (timer !== undefined) return;
      else if (waitMs > 0) timer = setTimeout(onInterval, waitMs);
      else flush();
    },
    /** Passes on the rest. */
    end(): void {
      clearTimeout(timer);
      if (waiting !== '') pass(cleanText(waiting));
      waiting = '';
    },
  };
}
