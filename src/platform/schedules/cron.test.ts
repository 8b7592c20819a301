import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { patient } from '../../../test/support/wait-for.ts';
import { dayMs } from '../../kernel/clock.ts';
import { CronError, nextMatch, normalForm, parseCron } from './cron.ts';

const after = (expression: string, from: string): string => {
  const next = nextMatch(parseCron(expression), Date.parse(from));
  return new Date(next).toISOString().replace(':00.000Z', 'Z');
};
const newYear = '2026-01-01T00:00:00Z';

describe('the next match', () => {
  test.each([
    // A Thursday. The 13th or every Friday, never only Friday the 13th.
    ['0 0 13 * 5', newYear, '2026-01-02T00:00Z'],
    ['0 0 13 * 5', '2026-01-09T00:00:00Z', '2026-01-13T00:00Z'],
    ['0 0 13 * 5', '2026-01-13T00:00:00Z', '2026-01-16T00:00Z'],
    // A day field that begins with * restricts nothing: then both must match.
    ['0 0 */10 * 5', newYear, '2026-05-01T00:00Z'],
    ['0 0 */10 * 5', '2026-05-01T00:00:00Z', '2026-07-31T00:00Z'],
    ['0 0 13 * */2', newYear, '2026-01-13T00:00Z'],
    ['0 0 13 * */2', '2026-01-13T00:00:00Z', '2026-06-13T00:00Z'],
    ['0 0 *,5 * 1', newYear, '2026-01-05T00:00Z'],
    ['0 0 1-31 * 1', newYear, '2026-01-02T00:00Z'],
    ['0 0 1 * *', '2026-01-31T23:59:59.999Z', '2026-02-01T00:00Z'],
    ['0 0 31 * *', '2026-01-31T00:00:00Z', '2026-03-31T00:00Z'],
    ['0 0 * * 7', newYear, '2026-01-04T00:00Z'],
    ['0 0 * * 0', newYear, '2026-01-04T00:00Z'],
    ['0 0 * * 5-7', '2026-01-03T00:00:00Z', '2026-01-04T00:00Z'],
    ['0 0 * * 5-7', '2026-01-04T00:00:00Z', '2026-01-09T00:00Z'],
    ['0 0 * * 6-7', newYear, '2026-01-03T00:00Z'],
    ['0 0 * * 0-7', newYear, '2026-01-02T00:00Z'],
    ['0 0 * * 1-7/2', '2026-01-02T00:00:00Z', '2026-01-04T00:00Z'],
    ['1-5/2 * * * *', '2026-01-01T00:01:00Z', '2026-01-01T00:03Z'],
    ['1-10/3 * * * *', '2026-01-01T00:07:00Z', '2026-01-01T00:10Z'],
    ['*/100 * * * *', '2026-01-01T00:00:00Z', '2026-01-01T01:00Z'],
    ['5-9/100 * * * *', newYear, '2026-01-01T00:05Z'],
    ['*/5,*/7 * * * *', '2026-01-01T00:05:00Z', '2026-01-01T00:07Z'],
    ['*,5 * * * *', newYear, '2026-01-01T00:01Z'],
    ['0 0 * * 1,MON', newYear, '2026-01-05T00:00Z'],
    ['5,5,05 * * * *', newYear, '2026-01-01T00:05Z'],
    ['00 09 * JAN mon-Fri', newYear, '2026-01-01T09:00Z'],
    ['0 0 1 jAn-MAR/2 *', newYear, '2026-03-01T00:00Z'],
    ['59 23 31 12 *', '2026-12-31T23:58:59.999Z', '2026-12-31T23:59Z'],
    ['59 23 31 12 *', '2026-12-31T23:59:00Z', '2027-12-31T23:59Z'],
    ['31,32,59 * * * *', '2026-01-01T00:31:00Z', '2026-01-01T00:32Z'],
    ['32-59/9 * * * *', '2026-01-01T00:41:00Z', '2026-01-01T00:50Z'],
    [' 0\t0\n1   1\f*\r', newYear, '2027-01-01T00:00Z'],
    ['0 0 29 2 *', newYear, '2028-02-29T00:00Z'],
    // 2100 is no leap year.
    ['0 0 29 2 *', '2096-02-29T00:00:00Z', '2104-02-29T00:00Z'],
    ['0 0 29 2 *', '2096-02-28T23:59:59.999Z', '2096-02-29T00:00Z'],
    ['0 0 29 2 */7', newYear, '2032-02-29T00:00Z'],
    ['0 0 29 2 */7', '2088-02-29T00:00:00Z', '2128-02-29T00:00Z'],
    ['0 0 */28 2 1', newYear, '2027-02-01T00:00Z'],
  ])('of %j after %s is %s', (expression, from, next) => {
    expect(after(expression, from)).toBe(next);
  });

  test.each([0, 1, 59_999, 60_000])('is a whole minute strictly after, %i ms into it', (ms) => {
    const from = Date.parse(newYear) + ms;
    const next = nextMatch(parseCron('* * * * *'), from);
    expect(next % 60_000).toBe(0);
    expect(next).toBeGreaterThan(from);
    expect(next - from).toBeLessThanOrEqual(60_000);
  });
});

describe('an expression is refused', () => {
  const long = Array.from({ length: 200 }, () => '1').join(',');

  test.each([
    ...['', ' ', '*', '* * * *', '* * * * * *', '0 0 0 1 1 *', '* * * * * 2026'],
    ...['*/0 * * * *', '*/00 * * * *', '1-5/0 * * * *', '60 * * * *', '-1 * * * *', '1, * * * *'],
    ...['1,,2 * * * *', ',1 * * * *', '5/15 * * * *', '*/ * * * *', '*/-1 * * * *', '*/* * * * *'],
    ...['1- * * * *', '-5 * * * *', '1-2-3 * * * *', '1-* * * * *', '*-5 * * * *', '** * * * *'],
    ...['1.5 * * * *', '1e1 * * * *', '0x1 * * * *', '+5 * * * *', '٣ * * * *', '１ * * * *'],
    ...['* 24 * * *', '* * 0 * *', '* * 32 * *', '* * * 0 *', '* * * 13 *', '* * * * 8'],
    ...['5-1 * * * *', '* * * * 5-1', '* * * * 5-0', '* * * * 7-1', '* * * * FRI-MON'],
    ...['* * * * FRI-SUN', '* * * NOV-FEB *', '* * * * MONDAY', '* * * JANUARY *', '* * * * MO'],
    ...['* * * * JAN', '* * * MON *', 'JAN * * * *', '* SUN * * *', '* * MON * *', '* * * * ſun'],
    ...['@daily', '@daily * * * *', '* * L * *', '* * 15W * *', '* * LW * *', '* * * * 5L'],
    ...['* * * * 1#2', '? * * * *', '* * ? * *', 'H * * * *', 'H/5 * * * *', 'TZ=UTC * * * * *'],
    ...['2026-01-01T00:00:00Z', '0 0 30 2 *', '0 0 31 2 *', '0 0 30,31 2 *', '0 0 31 4,6 *'],
    ...[
      '0 0 31 2,4,6,9,11 */1',
      `${long} * * * *`,
      '* * * * *\u00a0',
      '*\u00a0* * * *',
      '🕐 * * * *',
    ],
  ])('%j', (expression) => {
    let refusal: unknown;
    try {
      parseCron(expression);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(CronError);
    expect((refusal as CronError).message).toMatch(/^(must|has|never) .+/);
    expect((refusal as CronError).message.length).toBeLessThan(150);
  });

  test('above 256 characters, and taken with 256', () => {
    const spaces = (n: number) => `*${' '.repeat(n)}* * * *`;
    expect(() => parseCron(spaces(248))).not.toThrow();
    expect(spaces(248)).toHaveLength(256);
    expect(() => parseCron(spaces(249))).toThrow(CronError);
  });
});

describe('the normal form', () => {
  test.each([
    ['  0\t9 *  * mon-Fri\n', '0 9 * * MON-FRI'],
    ['* * * * *', '* * * * *'],
  ])('of %j is %j', (text, normal) => {
    expect(normalForm(text)).toBe(normal);
  });

  test('tells texts apart that mean the same', () => {
    expect(normalForm('*/1 * * * *')).not.toBe(normalForm('* * * * *'));
  });
});

describe('beside a walk through days and minutes', () => {
  /** A field of an expression, without steps on the asterisk. */
  function field(min: number, max: number, names: readonly string[] = []): fc.Arbitrary<string> {
    const value = fc.integer({ min, max });
    const shown = (n: number) => fc.constantFrom(String(n), names[n - min] ?? `0${n}`);
    const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
    const step = fc.integer({ min: 1, max: Math.min(max, 12) });
    const item = fc.oneof(
      value.chain(shown),
      range,
      fc.tuple(fc.integer({ min, max: min + 1 }), step).map(([a, n]) => `${a}-${max}/${n}`),
    );
    return fc.oneof(
      fc.constant('*'),
      fc.array(item, { minLength: 1, maxLength: 4 }).map((items) => items.join(',')),
    );
  }
  const stepped = (max: number) => fc.integer({ min: 1, max }).map((n) => `*/${n}`);
  const months = [
    'JAN',
    'FEB',
    'MAR',
    'APR',
    'MAY',
    'JUN',
    'JUL',
    'AUG',
    'SEP',
    'OCT',
    'NOV',
    'DEC',
  ];
  const weekdays = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', '7'];
  const expression = fc
    .tuple(
      fc.oneof(field(0, 59), stepped(59)),
      fc.oneof(field(0, 23), stepped(23)),
      field(1, 31),
      fc.oneof(field(1, 12, months), stepped(12)),
      field(0, 7, weekdays),
    )
    .map((texts) => texts.join(' '))
    .filter((text) => text.length <= 256);
  const moment = fc.integer({
    min: Date.parse('1971-01-01T00:00:00Z'),
    max: Date.parse('2200-01-01T00:00:00Z'),
  });

  /** The numbers that a field of a valid expression matches. */
  function numbersOf(text: string, min: number, max: number, names: readonly string[] = []) {
    const numberOf = (value: string) =>
      names.includes(value) ? names.indexOf(value) + min : Number(value);
    const items = text.split(',').flatMap((item) => {
      const [range = '', step = '1'] = item.split('/');
      const [first = min, last = range === '*' ? max : first] =
        range === '*' ? [] : range.split('-').map(numberOf);
      return Array.from({ length: max - min + 1 }, (_, i) => min + i).filter(
        (n) => n >= first && n <= last && (n - first) % Number(step) === 0,
      );
    });
    return new Set(items);
  }

  /** The first match after `from`, found by looking at each day and each minute; null when it never fires. */
  function walkToNext(text: string, from: number): number | null {
    const [minute = '', hour = '', day = '', month = '', weekday = ''] = text.split(' ');
    const minutes = numbersOf(minute, 0, 59);
    const hours = numbersOf(hour, 0, 23);
    const days = numbersOf(day, 1, 31);
    const monthNumbers = numbersOf(month, 1, 12, months);
    const dayNumbers = numbersOf(weekday, 0, 7, weekdays);
    const isEither = day !== '*' && weekday !== '*';
    const today = Math.floor(from / dayMs) * dayMs;
    for (let at = today; at < today + 30 * 366 * dayMs; at += dayMs) {
      const date = new Date(at);
      const isDay = days.has(date.getUTCDate());
      const number = date.getUTCDay();
      const isWeekday = dayNumbers.has(number) || (number === 0 && dayNumbers.has(7));
      if (!monthNumbers.has(date.getUTCMonth() + 1)) continue;
      if (isEither ? !isDay && !isWeekday : !isDay || !isWeekday) continue;
      for (let n = 0; n < 24 * 60; n++) {
        const slot = at + n * 60_000;
        if (slot > from && hours.has(Math.floor(n / 60)) && minutes.has(n % 60)) return slot;
      }
    }
    return null;
  }

  test('the next matches are the same', () => {
    fc.assert(
      fc.property(expression, moment, (text, from) => {
        let expected = walkToNext(text, from);
        if (expected === null) {
          expect(() => parseCron(text)).toThrow(CronError);
          return;
        }
        const cron = parseCron(text);
        for (let i = 0, at = from; i < 5; i++) {
          at = nextMatch(cron, at);
          expect(at).toBe(expected);
          expected = walkToNext(text, at);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('the time it takes', () => {
  /** The fastest of many turns, in microseconds, so that a busy machine does not count. */
  function microseconds(run: () => unknown): number {
    let fastest = Number.POSITIVE_INFINITY;
    for (let turn = 0; turn < 100; turn++) {
      const start = performance.now();
      for (let i = 0; i < 10; i++) run();
      fastest = Math.min(fastest, (performance.now() - start) / 10);
    }
    return fastest * 1000;
  }

  test.each(['* * * * *', '*/5 9-17 * * MON-FRI', '0 0 13 * 5', '59 23 31 12 *'])(
    'for %j is under 50 µs',
    (text) => {
      const cron = parseCron(text);
      const from = Date.parse('2026-01-01T00:00:30Z');
      expect(microseconds(() => nextMatch(cron, from))).toBeLessThan(50);
    },
  );

  test('for 29 February on a given weekday is under 5 ms, parsing included', () => {
    const from = Date.parse('2088-03-01T00:00:00Z');
    expect(after('0 0 29 2 */7', '2088-03-01T00:00:00Z')).toBe('2128-02-29T00:00Z');
    expect(microseconds(() => nextMatch(parseCron('0 0 29 2 */7'), from))).toBeLessThan(
      patient(5_000),
    );
  });
});
