/**
 * Batches the text that a model streams into events: the first at once, then at most one every 100
 * milliseconds. A batch never ends in the middle of a character.
 */
import { cleanText } from '../kernel/text.ts';

/** Milliseconds between two batches. */
const intervalMs = 100;
/** Characters at which a batch is passed on at once. */
const charactersMax = 4_096;

export function createTextBatcher(pass: (text: string) => void) {
  let waiting = '';
  let timer: NodeJS.Timeout | undefined;
  /** Whether no text came in the last interval. */
  let isIdle = true;

  function flush(): void {
    const end = endsMidCharacter(waiting) ? waiting.length - 1 : waiting.length;
    const batch = waiting.slice(0, end);
    waiting = waiting.slice(end);
    if (batch !== '') pass(cleanText(batch));
  }

  function onInterval(): void {
    timer = undefined;
    isIdle = waiting === '';
    if (isIdle) return;
    flush();
    timer = setTimeout(onInterval, intervalMs);
  }

  return {
    add(text: string): void {
      waiting += text;
      if (isIdle) {
        isIdle = false;
        flush();
        timer = setTimeout(onInterval, intervalMs);
      } else if (waiting.length >= charactersMax) flush();
    },
    /** Passes on the rest. */
    end(): void {
      clearTimeout(timer);
      if (waiting !== '') pass(cleanText(waiting));
      waiting = '';
    },
  };
}

/** Whether a text ends with the first half of a surrogate pair. */
export function endsMidCharacter(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}
