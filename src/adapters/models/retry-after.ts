/**
 * How long a provider asks to be left alone, by an error response: `Retry-After`, else Google's `RetryInfo` in its body, else the
 * moments at which its documented limits have room again. A provider's word is hostile input: what is no time counts as nothing said.
 */

import { boundedDelay, delayOf, delayOfRetryAfter, delayUntil } from '../../kernel/retry-after.ts';

/** Limits of OpenAI and of servers that copy it: a header says what remains, and one how long until it is renewed. */
const remaining = /^x-ratelimit-remaining-(requests|tokens)$/;
/** Those of Anthropic, which name the moment. */
const remainingOfAnthropic =
  /^anthropic-ratelimit-(requests|tokens|input-tokens|output-tokens)-remaining$/;
/** Such as `1s`, `6m0s`, `120ms`, `1h2m3.5s`. */
const duration =
  /^(?:(\d{1,4})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,8}(?:\.\d{1,9})?)s)?(?:(\d{1,9})ms)?$/;

/**
 * The delay that the headers ask for, else the body of the error (`inBody`), in milliseconds, an hour at most; null without a valid
 * one.
 */
export function retryAfterOf(headers: Headers, now: number, inBody = ''): number | null {
  return (
    delayOf(headers.get('retry-after-ms')?.trim() ?? '', 1) ??
    delayOfRetryAfter(headers.get('retry-after') ?? '', now) ??
    durationOf(inBody) ??
    resetOf(headers, now)
  );
}

/** The longest time until one of the limits has room that have none. */
function resetOf(headers: Headers, now: number): number | null {
  const delays = [...headers].flatMap(([name, value]) => {
    if (value.trim() !== '0') return [];
    const [, ofOpenAi] = remaining.exec(name) ?? [];
    const [, ofAnthropic] = remainingOfAnthropic.exec(name) ?? [];
    const delay =
      ofOpenAi === undefined
        ? delayUntil(headers.get(`anthropic-ratelimit-${ofAnthropic}-reset`) ?? '', now)
        : durationOf(headers.get(`x-ratelimit-reset-${ofOpenAi}`) ?? '');
    return delay === null ? [] : [delay];
  });
  return delays.length === 0 ? null : Math.max(...delays);
}

function durationOf(text: string): number | null {
  const plain = text.trim();
  const ofSeconds = delayOf(plain, 1_000);
  if (ofSeconds !== null) return ofSeconds;
  const [all = '', h = 0, m = 0, s = 0, ms = 0] = duration.exec(plain) ?? [];
  if (all === '') return null;
  return boundedDelay(Number(h) * 3_600_000 + Number(m) * 60_000 + Number(s) * 1_000 + Number(ms));
}
