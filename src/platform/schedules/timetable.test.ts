import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cpuMsOf } from '../../../test/support/cpu-time.ts';
import { patient } from '../../../test/support/wait-for.ts';
import { nextChange, zoneNamed } from '../../kernel/zones.ts';
import { nextMatch } from './cron.ts';
import { firstSlots, slotsUpTo } from './due-slots.ts';
import { nextSlot, parseStoredTimetable, parseTimetable, type Timetable } from './timetable.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

const timetable = (cron_expression: string, timezone: string | null) =>
  parseTimetable({ cron_expression, timezone });

const slotsOf = (expression: string, zone: string, from: string, to: string) =>
  firstSlots(timetable(expression, zone), Date.parse(from), Date.parse(to)).map((slot) =>
    new Date(slot).toISOString().replace(':00.000Z', 'Z'),
  );

describe('with fixed hours', () => {
  test.each([
    // Nine o'clock is an hour earlier in UTC from 29 March on.
    [
      '0 9 * * *',
      'Europe/Berlin',
      '2026-03-28T00:00Z',
      '2026-03-30T00:00Z',
      ['2026-03-28T08:00Z', '2026-03-29T07:00Z'],
    ],
    // 02:30 is skipped: once, at the moment of the change.
    [
      '30 2 * * *',
      'Europe/Berlin',
      '2026-03-28T12:00Z',
      '2026-03-30T12:00Z',
      ['2026-03-29T01:00Z', '2026-03-30T00:30Z'],
    ],
    // Several skipped times, and one that is the moment of the change.
    [
      '*/20 2,3 * * *',
      'Europe/Berlin',
      '2026-03-28T12:00Z',
      '2026-03-29T12:00Z',
      ['2026-03-29T01:00Z', '2026-03-29T01:20Z', '2026-03-29T01:40Z'],
    ],
    // 02:30 comes twice: the first one.
    [
      '30 2 * * *',
      'Europe/Berlin',
      '2026-10-24T12:00Z',
      '2026-10-26T12:00Z',
      ['2026-10-25T00:30Z', '2026-10-26T01:30Z'],
    ],
    [
      '30 1 * * *',
      'America/New_York',
      '2026-10-31T12:00Z',
      '2026-11-02T12:00Z',
      ['2026-11-01T05:30Z', '2026-11-02T06:30Z'],
    ],
    // Changes by half an hour.
    [
      '15 2 * * *',
      'Australia/Lord_Howe',
      '2026-10-03T12:00Z',
      '2026-10-05T00:00Z',
      ['2026-10-03T15:30Z', '2026-10-04T15:15Z'],
    ],
    [
      '45 1 * * *',
      'Australia/Lord_Howe',
      '2026-04-04T00:00Z',
      '2026-04-06T00:00Z',
      ['2026-04-04T14:45Z', '2026-04-05T15:15Z'],
    ],
    // Changes by two hours.
    [
      '0 2 * * *',
      'Antarctica/Troll',
      '2026-03-28T12:00Z',
      '2026-03-30T12:00Z',
      ['2026-03-29T01:00Z', '2026-03-30T00:00Z'],
    ],
    // Ramadan in winter time.
    [
      '30 2 * * *',
      'Africa/Casablanca',
      '2025-02-22T12:00Z',
      '2025-02-24T12:00Z',
      ['2025-02-23T01:30Z', '2025-02-24T02:30Z'],
    ],
    // 30 December 2011 was skipped as a whole.
    [
      '0 9 * * *',
      'Pacific/Apia',
      '2011-12-29T12:00Z',
      '2012-01-01T00:00Z',
      ['2011-12-29T19:00Z', '2011-12-30T10:00Z', '2011-12-30T19:00Z', '2011-12-31T19:00Z'],
    ],
    [
      '0 9 30 12 *',
      'Pacific/Apia',
      '2011-12-01T00:00Z',
      '2012-06-01T00:00Z',
      ['2011-12-30T10:00Z'],
    ],
  ])('%j in %s fires once for each local time', (expression, zone, from, to, slots) => {
    expect(slotsOf(expression, zone, from, to)).toEqual(slots);
  });
});

describe('where the hour begins with *', () => {
  test.each([
    ['0 * * * *', 'Europe/Berlin', '2026-03-28T23:59Z', hour],
    ['0 * * * *', 'Europe/Berlin', '2026-10-24T22:59Z', hour],
    ['*/30 * * * *', 'Australia/Lord_Howe', '2026-10-03T13:59Z', hour / 2],
    ['*/30 * * * *', 'Australia/Lord_Howe', '2026-04-04T13:59Z', hour / 2],
    ['*/15 * * * *', 'Africa/Casablanca', '2025-02-22T23:59Z', hour / 4],
    ['0 * * * *', 'Pacific/Apia', '2011-12-30T06:59Z', hour],
    ['* * * * *', 'Antarctica/Troll', '2026-10-24T23:59Z', minute],
  ])(
    '%j in %s follows elapsed time through a change of the clock',
    (expression, zone, from, step) => {
      const first = nextSlot(timetable(expression, zone), Date.parse(from));
      const slots = firstSlots(timetable(expression, zone), first, first + 6 * hour);

      expect(slots).toEqual(Array.from({ length: (6 * hour) / step }, (_, i) => first + i * step));
    },
  );

  test('times that the clock skips do not fire, and those that it shows again fire again', () => {
    expect(
      slotsOf('0 */2 * * *', 'Europe/Berlin', '2026-03-28T22:00Z', '2026-03-29T05:00Z'),
    ).toEqual(['2026-03-28T23:00Z', '2026-03-29T02:00Z', '2026-03-29T04:00Z']);
    expect(
      slotsOf('0 */2 * * *', 'Europe/Berlin', '2026-10-24T22:00Z', '2026-10-25T04:00Z'),
    ).toEqual(['2026-10-24T22:00Z', '2026-10-25T00:00Z', '2026-10-25T01:00Z', '2026-10-25T03:00Z']);
  });
});

describe('without a zone', () => {
  test('the fields are UTC', () => {
    const from = Date.parse('2026-03-29T00:00Z');
    expect(nextSlot(timetable('30 2 * * *', null), from)).toBe(Date.parse('2026-03-29T02:30Z'));
  });
});

describe('a stored timetable', () => {
  test.each([
    ['0 9 * * *', 'Mars/Olympus'],
    ['0 9 * *', 'Europe/Berlin'],
  ])('%j in %s is null, and stops no other one', (cron_expression, timezone) => {
    expect(parseStoredTimetable({ cron_expression, timezone })).toBeNull();
  });
});

/** What the clock of a zone shows, as UTC would be, by another part of the runtime. */
function clockOf(zone: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat('en-u-ca-iso8601-hc-h23', {
    timeZone: zone,
    ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
    ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
  });
  return (ms) => {
    const part = Object.fromEntries(
      format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]),
    );
    const { year = 0, month = 1, day = 1, hour, minute, second } = part;
    return Date.UTC(year, month - 1, day, hour, minute, second);
  };
}

/** Looks at the clock every minute from `from` to before `to`, as cron does. */
function watchClock(
  { cron, followsElapsedTime }: Timetable,
  zone: string,
  from: number,
  to: number,
) {
  const clock = clockOf(zone);
  const slots: number[] = [];
  let latest = Number.NEGATIVE_INFINITY;
  for (let at = from - 26 * hour; at < to; at += minute) {
    const shown = clock(at);
    const fires = followsElapsedTime
      ? nextMatch(cron, shown - 1) === shown
      : nextMatch(cron, Math.max(latest, shown - 2 * day)) <= shown;
    if (fires && at >= from) slots.push(at);
    latest = Math.max(latest, shown);
  }
  return slots;
}

const zones = [
  ...['Europe/Berlin', 'America/New_York', 'America/St_Johns', 'Australia/Lord_Howe'],
  ...['Africa/Casablanca', 'Africa/El_Aaiun', 'Pacific/Apia', 'Antarctica/Troll', 'Asia/Gaza'],
  ...['Asia/Kathmandu', 'Pacific/Chatham', 'Pacific/Kiritimati', 'America/Sao_Paulo'],
  ...['Africa/Cairo', 'Asia/Pyongyang', 'America/Caracas', 'Pacific/Kwajalein', 'Etc/GMT+12'],
  ...['Europe/Dublin', 'Asia/Tehran', 'America/Havana', 'Antarctica/Casey', 'EST5EDT', 'UTC'],
];
const expressions = [
  ...['* * * * *', '0 * * * *', '*/7 */3 * * *', '30 */2 * * SUN', '0 9 * * *', '30 2 * * *'],
  ...['*/20 0-3 * * *', '15,45 1,2,23 * * *', '59 23 31 * *', '0 0 1 1 *', '5 0-5/2 * * SAT,SUN'],
];
/** Begins with a whole minute, and often shortly before a change of the clock. */
const moment = (zone: string) =>
  fc
    .tuple(
      fc.integer({ min: Date.parse('1975-01-01'), max: Date.parse('2090-01-01') }),
      fc.integer({ min: -30 * 60, max: 6 * 60 }),
      fc.boolean(),
    )
    .map(([ms, minutes, isNearChange]) => {
      const change = isNearChange ? nextChange(zone, ms) : null;
      return Math.floor((change ?? ms) / minute) * minute + minutes * minute;
    });
const zoneAndMoment = fc
  .constantFrom(...zones)
  .chain((zone) => fc.tuple(fc.constant(zone), moment(zone)));

describe('in any zone', () => {
  test('it fires in every minute in which a clock that is read each minute matches', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...expressions),
        zoneAndMoment,
        fc.integer({ min: 1, max: 40 }),
        (expression, [zone, from], max) => {
          const table = timetable(expression, zone);
          const to = from + 2 * day;
          const watched = watchClock(table, zone, from, to);

          expect(firstSlots(table, from, to)).toEqual(watched);
          expect(slotsUpTo(table, from, to - 1, max)).toEqual({
            newest: watched.slice(-max),
            older: Math.max(0, watched.length - max),
          });
        },
      ),
      { numRuns: 150 },
    );
  }, 240_000);

  test('the next slot is the same from every moment before it', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...expressions),
        zoneAndMoment,
        fc.nat(3 * day),
        (expression, [zone, from], later) => {
          const table = timetable(expression, zone);
          const next = nextSlot(table, from);
          expect(next).toBeGreaterThan(from);
          const between = Math.min(from + later, next - 1);
          expect(nextSlot(table, between)).toBe(next);
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

describe('a name of a zone', () => {
  test.each([
    ['europe/berlin', 'Europe/Berlin'],
    ['America/Argentina/Buenos_Aires', 'America/Argentina/Buenos_Aires'],
    ['utc', 'UTC'],
    // A link keeps its own name.
    ['asia/calcutta', 'Asia/Calcutta'],
    ['Asia/Kolkata', 'Asia/Kolkata'],
  ])('%j is %s', (given, name) => {
    expect(zoneNamed(given)).toBe(name);
  });

  test.each([
    ...[
      '',
      '+02:00',
      '-0500',
      'Europe/Atlantis',
      'Europe/Berlin ',
      'Europe',
      `A${'/a'.repeat(40)}`,
    ],
    ...[
      '2026-01-01T00:00[Europe/Berlin]',
      'T00:00[Europe/Berlin]',
      'Z',
      '__proto__',
      'Europe/Berlin\u0000',
    ],
  ])('%j is none', (given) => {
    expect(zoneNamed(given)).toBeNull();
  });
});

describe('the time it takes', () => {
  test.each(['0 9 * * *', '* * 29 2 *', '0 * * * *', '0 9 29 2 */7'])(
    'for the next hundred slots of %j is below half a second',
    async (expression) => {
      const table = timetable(expression, 'Europe/Berlin');
      const from = Date.parse('2026-01-01T00:00Z');
      const hundred = () => firstSlots(table, from, Number.POSITIVE_INFINITY, 100);
      hundred();

      expect(await cpuMsOf(hundred)).toBeLessThan(patient(500));
    },
  );

  test.each(['0 9 * * *', '* * * * *'])(
    'for eight missed years of %j is below 200 ms',
    async (expression) => {
      const table = timetable(expression, 'America/New_York');
      const [first, now] = [Date.parse('2018-01-01T00:00Z'), Date.parse('2026-01-01T00:00Z')];
      const count = () => slotsUpTo(table, first, now, 60);
      const { newest, older } = count();

      expect(newest).toHaveLength(60);
      expect(older + 60).toBe(expression === '0 9 * * *' ? 2_922 : (now - first) / minute + 1);
      expect(await cpuMsOf(count)).toBeLessThan(patient(200));
    },
  );
});
