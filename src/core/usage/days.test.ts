import { describe, expect, test } from 'vitest';
import type { PlatformError } from '../../kernel/errors.ts';
import { dayOf, daysMax, monthOf, monthRange, rangeOf } from './days.ts';

const now = Date.parse('2026-11-21T23:59:59.999Z');

test('a day and a month are those of UTC', () => {
  expect(dayOf(now)).toBe('2026-11-21');
  expect(dayOf(now + 1)).toBe('2026-11-22');
  expect(monthOf('2026-11-21')).toBe('2026-11');
});

test('a month has all its days and no others', () => {
  const { from, to } = monthRange('2026-02-10');
  const days = ['2026-01-31', '2026-02-01', '2026-02-28', '2026-03-01', '2025-02-10'];

  expect(days.filter((day) => day >= from && day <= to)).toEqual(['2026-02-01', '2026-02-28']);
});

describe('the requested days', () => {
  test.each([
    [{}, '2026-10-23', '2026-11-21'],
    [{ from: '2026-11-21' }, '2026-11-21', '2026-11-21'],
    [{ from: '2026-01-01' }, '2026-01-01', '2026-11-21'],
    [{ to: '2024-03-01' }, '2024-02-01', '2024-03-01'],
    [{ from: '2024-02-29', to: '2024-02-29' }, '2024-02-29', '2024-02-29'],
    [{ from: '2026-11-30', to: '2027-01-01' }, '2026-11-30', '2027-01-01'],
    [{ from: '2025-10-18' }, '2025-10-18', '2026-11-21'],
  ])('%j are from %s to %s', (asked, from, to) => {
    expect(rangeOf(asked, now)).toEqual({ from, to });
  });

  test('are refused when they end before they begin', () => {
    expect(refusedField(() => rangeOf({ from: '2026-11-22' }, now))).toBe('from');
    expect(refusedField(() => rangeOf({ from: '2026-11-02', to: '2026-11-01' }, now))).toBe('from');
  });

  test(`are at most ${daysMax}`, () => {
    expect(refusedField(() => rangeOf({ from: '2025-10-17' }, now))).toBe('from');
    expect(refusedField(() => rangeOf({ from: '2025-10-18' }, now))).toBeUndefined();
  });
});

/** The field that a refusal names; undefined without a refusal. */
function refusedField(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    const { code, extras } = error as PlatformError;
    expect(code).toBe('validation_error');
    return extras.details?.[0]?.field;
  }
}
