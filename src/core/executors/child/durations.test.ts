import { describe, expect, test } from 'vitest';
import { readDuration, readMoment } from './durations.ts';

const day = 86_400_000;

describe('a duration', () => {
  test.each<[unknown, number]>([
    [0, 0],
    [1_500, 1_500],
    [0.2, 1],
    ['500ms', 500],
    ['90s', 90_000],
    ['15m', 900_000],
    ['15 min', 900_000],
    ['1h 30m', 5_400_000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['3d', 3 * day],
    ['3 days', 3 * day],
    ['1w', 7 * day],
    [' 365d ', 365 * day],
  ])('%j has %i ms', (given, ms) => {
    expect(readDuration(given, 'it')).toBe(ms);
  });

  test.each([
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '',
    '15',
    '15 x',
    'm',
    '-3d',
    '1h-30m',
    '1h, 30m',
    '1e3s',
    `${'1s '.repeat(1_000)}`,
    null,
    undefined,
    {},
    new Date(),
  ])('%j is refused with what to write', (given) => {
    expect(() => readDuration(given, 'the nap')).toThrow(/^the nap must be a text such as '15m'/);
  });

  test('of more than 365 days is refused', () => {
    expect(() => readDuration('366d', 'the nap')).toThrow(
      'the nap may be 365 days at most; it is "366d"',
    );
    expect(() => readDuration('53w', 'the nap')).toThrow('365 days at most');
  });

  test('is refused for good', () => {
    expect(() => readDuration('soon', 'it')).toThrow(
      expect.objectContaining({ retryable: false }) as Error,
    );
  });
});

describe('a moment', () => {
  const now = Date.UTC(2026, 0, 1);

  test.each<[unknown, number]>([
    [new Date(now + 5), now + 5],
    ['2026-01-01T00:00:01Z', now + 1_000],
    [now - day, now - day],
  ])('%j is read', (given, at) => {
    expect(readMoment(given, 'it', now)).toBe(at);
  });

  test.each([new Date('no'), 'tomorrow', Number.NaN, 1e20, null, undefined, {}, true])(
    '%j is refused',
    (given) => {
      expect(() => readMoment(given, 'the alarm', now)).toThrow(
        /^the alarm must be a valid Date, an ISO 8601 text/,
      );
    },
  );

  test('that is more than 365 days away is refused', () => {
    expect(() => readMoment(now + 366 * day, 'the alarm', now)).toThrow(
      'the alarm may be 365 days away at most',
    );
  });
});
