/** `Retry-After` of an answer: hostile input, so what is no time counts as nothing said. */

/** A longer delay counts as this: then the server is asked again. */
export const retryAfterMaxMs = 3_600_000;

const number = /^\d{1,9}(\.\d{1,9})?$/;

/** The delay that a header asks for, seconds or a date, in milliseconds, `retryAfterMaxMs` at most; null without a valid one. */
export function delayOfRetryAfter(text: string, now: number): number | null {
  const plain = text.trim();
  return delayOf(plain, 1_000) ?? (/[a-z]/i.test(plain) ? delayUntil(plain, now) : null);
}

/** The delay of a number of units; null for any other text. */
export function delayOf(text: string, unitMs: number): number | null {
  return number.test(text) ? boundedDelay(Number(text) * unitMs) : null;
}

/** The delay until a date; null for what is none. */
export function delayUntil(text: string, now: number): number | null {
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : boundedDelay(at - now);
}

export const boundedDelay = (ms: number) => Math.min(retryAfterMaxMs, Math.max(0, Math.ceil(ms)));
