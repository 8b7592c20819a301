import { describe, expect, test } from 'vitest';
import { decide, missedSlots, type Refusal, recordsDue } from './run-due.ts';
import { parseTimetable } from './timetable.ts';

const slot = Date.parse('2026-01-01T12:00:00Z');
const parse = (cron_expression: string) => parseTimetable({ cron_expression, timezone: null });
const minute = 60_000;
const hour = 60 * minute;
const paused: Refusal = { outcome: 'agent_paused', code: 'agent_paused', message: 'It is paused.' };

/** Decides about an expression that was due at 12:00, `lateMs` after that. */
function decided(
  lateMs: number,
  more: { cron?: string; isRunning?: boolean; taken?: number[]; refusal?: Refusal } = {},
) {
  const { cron = '0 12 * * *', isRunning = false, taken = [], refusal = null } = more;
  const schedule = { timetable: parse(cron), dueAt: slot, isRunning, taken: new Set(taken) };
  const { records, runs, isRefused, nextRunAt } = decide(schedule, refusal, slot + lateMs);
  return {
    outcomes: records.map(({ outcome }) => outcome),
    runs: runs?.slot ?? null,
    isRefused,
    next: nextRunAt,
    records,
  };
}

describe('a slot that has come', () => {
  test.each([
    [0, 'fired'],
    [10_000, 'fired'],
    [10_001, 'caught_up'],
    [hour - 1, 'caught_up'],
  ])('runs %i ms later as %s', (lateMs, outcome) => {
    expect(decided(lateMs)).toMatchObject({ outcomes: [outcome], runs: slot, isRefused: false });
  });

  test.each([hour, 23 * hour])('does not run %i ms later: it was missed', (lateMs) => {
    expect(decided(lateMs)).toMatchObject({ outcomes: ['missed'], runs: null });
  });

  test('is overlapped while the last run is still active', () => {
    expect(decided(0, { isRunning: true })).toMatchObject({ outcomes: ['overlapped'], runs: null });
  });

  test('that may not run is refused, also while the last run is still active', () => {
    for (const isRunning of [false, true]) {
      expect(decided(0, { isRunning, refusal: paused })).toMatchObject({
        outcomes: ['agent_paused'],
        runs: null,
        isRefused: true,
      });
    }
  });

  test('that was missed is not refused as well', () => {
    expect(decided(hour, { refusal: paused })).toMatchObject({
      outcomes: ['missed'],
      isRefused: false,
    });
  });

  test('that has been dealt with before the clock was set back is left alone', () => {
    expect(decided(0, { taken: [slot] })).toMatchObject({ outcomes: [], runs: null });
    const both = decided(minute, { cron: '* * * * *', taken: [slot] });
    expect(both).toMatchObject({ outcomes: ['fired'], runs: slot + minute });
  });

  test('is followed by the first match after now', () => {
    expect(decided(0).next).toBe(slot + 24 * hour);
    expect(decided(25 * hour).next).toBe(slot + 48 * hour);
    expect(decided(90_000, { cron: '* * * * *' }).next).toBe(slot + 2 * minute);
  });
});

describe('of several missed slots', () => {
  test('the last one runs, the others are missed', () => {
    expect(decided(5 * minute, { cron: '* * * * *' })).toMatchObject({
      outcomes: ['missed', 'missed', 'missed', 'missed', 'missed', 'fired'],
      runs: slot + 5 * minute,
    });
    expect(decided(5 * minute + 20_000, { cron: '* * * * *' })).toMatchObject({
      outcomes: ['missed', 'missed', 'missed', 'missed', 'missed', 'caught_up'],
    });
  });

  test('none runs when the last one is an hour late', () => {
    const none = decided(3 * hour, { cron: '0 12,13,14 * * *' });
    expect(none).toMatchObject({ outcomes: ['missed', 'missed', 'missed'], runs: null });
  });

  test('the newest 60 have a record each, all older ones share one', () => {
    const { records } = decided(3_000 * minute, { cron: '* * * * *' });

    expect(records).toHaveLength(61);
    expect(records[0]).toMatchObject({ slot, outcome: 'missed', slots: 2_941 });
    expect(records[1]).toMatchObject({ slot: slot + 2_941 * minute, outcome: 'missed', slots: 1 });
    expect(records.at(-1)).toMatchObject({ slot: slot + 3_000 * minute, outcome: 'fired' });
    expect(new Set(records.map((record) => record.slot)).size).toBe(61);
  });

  test.each([0, 1, 59, 60, 61, 3_000])(
    'there are as many records as was foretold: %i',
    (minutes) => {
      const { records } = decided(minutes * minute, { cron: '* * * * *' });

      const timetable = parse('* * * * *');
      expect(records).toHaveLength(recordsDue(timetable, slot, slot + minutes * minute));
    },
  );

  test('all are missed for a reason that is given, but for those dealt with before', () => {
    const schedule = {
      timetable: parse('* * * * *'),
      dueAt: slot,
      taken: new Set([slot + 2 * minute]),
    };

    const records = missedSlots(schedule, 'it was changed', slot + 2 * minute);

    const message = 'Missed: it was changed.';
    expect(records).toEqual([
      { slot, outcome: 'missed', slots: 1, message },
      { slot: slot + minute, outcome: 'missed', slots: 1, message },
    ]);
  });
});
