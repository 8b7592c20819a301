import { expect, test } from 'vitest';
import { retryAfterMaxMs } from '../../kernel/retry-after.ts';
import { retryAfterOf } from './retry-after.ts';

const now = Date.UTC(2026, 10, 29, 12);
const delayOf = (headers: Record<string, string>) => retryAfterOf(new Headers(headers), now);

test.each<[number, Record<string, string>]>([
  [1_500, { 'retry-after-ms': '1500', 'retry-after': '9' }],
  [2_000, { 'retry-after': '2' }],
  [500, { 'retry-after': '0.5' }],
  [30_000, { 'retry-after': 'Sun, 29 Nov 2026 12:00:30 GMT' }],
  [0, { 'retry-after': 'Sun, 29 Nov 2026 11:00:00 GMT' }],
  [360_000, { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '6m0s' }],
  [120, { 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '120ms' }],
  [
    20_000,
    {
      'anthropic-ratelimit-input-tokens-remaining': '0',
      'anthropic-ratelimit-input-tokens-reset': '2026-11-29T12:00:20Z',
    },
  ],
])('%i ms are read from %o', (ms, headers) => {
  expect(delayOf(headers)).toBe(ms);
});

test('of several limits without room the last one counts, and one with room does not', () => {
  const limits = {
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': '1s',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': '3s',
  };
  expect(delayOf(limits)).toBe(3_000);
  expect(delayOf({ ...limits, 'x-ratelimit-remaining-tokens': '5' })).toBe(1_000);
});

test.each(['-1', '', 'soon', '1e9', 'NaN', '0x10', '99999999999999999999'])(
  'a Retry-After of %j says nothing',
  (text) => {
    expect(delayOf({ 'retry-after': text })).toBeNull();
  },
);

test('a year counts as an hour', () => {
  expect(delayOf({ 'retry-after': '31536000' })).toBe(retryAfterMaxMs);
  expect(delayOf({ 'retry-after': 'Mon, 29 Nov 2027 12:00:00 GMT' })).toBe(retryAfterMaxMs);
});
