import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cpuMsOf } from '../../../test/support/cpu-time.ts';
import { patient } from '../../../test/support/wait-for.ts';
import { slotsUpTo } from './due-slots.ts';
import { nextSlot, parseTimetable } from './timetable.ts';

const parse = (cron_expression: string) => parseTimetable({ cron_expression, timezone: null });

/** Slots from `from` to `to`, one by one. */
function walk(text: string, from: number, to: number): number[] {
  const timetable = parse(text);
  const slots: number[] = [];
  let slot = nextSlot(timetable, from - 1);
  while (slot <= to) {
    slots.push(slot);
    slot = nextSlot(timetable, slot);
  }
  return slots;
}

const day = 24 * 3_600_000;
const dense = fc.constantFrom(
  ...['* * * * *', '*/7 * * * *', '0 * * * *', '15,45 9-17 * * MON-FRI', '31-59/3 */2 * * *'],
);
const sparse = fc.constantFrom(
  ...['0 0 13 * 5', '0 0 */10 * 5', '0 0 29 2 *', '59 23 31 * *', '0 0 1 1 *', '0 12 * 2,11 0'],
);
/** An expression, and a length of time with some of its slots. */
const expressionAndLength = fc.oneof(
  fc.tuple(dense, fc.nat(5 * day)),
  fc.tuple(sparse, fc.nat(800 * day)),
);
const from = fc.integer({
  min: Date.parse('2023-11-01T00:00:00Z'),
  max: Date.parse('2028-04-01T00:00:00Z'),
});

describe('slots up to a moment', () => {
  test('are the newest ones, and the number of the older ones', () => {
    fc.assert(
      fc.property(
        fc.tuple(expressionAndLength, from, fc.integer({ min: 1, max: 50 })),
        ([[text, length], start, max]) => {
          const all = walk(text, start, start + length);
          const { newest, older } = slotsUpTo(parse(text), start, start + length, max);
          expect(newest).toEqual(all.slice(-max));
          expect(older).toBe(all.length - newest.length);
        },
      ),
      { numRuns: 200 },
    );
  });

  test('of a minutely expression over fifty years are found at once', async () => {
    const now = Date.parse('2026-01-01T00:00:30Z');
    const start = Date.parse('1976-01-01T00:00:00Z');
    const { newest, older } = slotsUpTo(parse('* * * * *'), start, now, 1_000);

    const again = () => slotsUpTo(parse('* * * * *'), start, now, 1_000);
    expect(await cpuMsOf(again)).toBeLessThan(patient(500));
    expect(newest).toHaveLength(1_000);
    expect(newest.at(-1)).toBe(Date.parse('2026-01-01T00:00:00Z'));
    expect(older + 1_000).toBe((Date.parse('2026-01-01T00:00:00Z') - start) / 60_000 + 1);
  });
});
