import { describe, expect, test } from 'vitest';
import {
  asking,
  begin,
  noLimits as none,
  SimulatedPace,
} from '../../../test/support/simulated-pace.ts';
import type { MinuteLimits } from '../../adapters/models/providers.ts';
import { ColdStart } from './cold-start.ts';
import { spent, takeMoment } from './moments.ts';
import { answered, freshPace, isPaced, type Pace, type Refusal, refused } from './pace-rule.ts';

/** The moments of n calls. */
const served = (n: number, at: number) => Array<number>(n).fill(at);
const refusal: Refusal = {
  begunAt: begin,
  isRateLimited: true,
  retryAfterMs: null,
  said: 'slower',
  served: served(8, begin),
  process: 'a',
};
/** A call that began then, of a process that knows of no others. */
const callAt = (begunAt: number) => ({ begunAt, served: [], process: 'a' });

/** When n calls begin that ask now, all at once. */
function momentsOf(pace: Pace, limits: MinuteLimits, n: number, now: number): number[] {
  const simulated = new SimulatedPace(pace, limits);
  simulated.now = now - begin;
  const moments: number[] = [];
  for (let i = 0; i < n; i++) simulated.ask({}, () => moments.push(begin + simulated.now));
  simulated.run();
  return moments;
}

/** The pace after a call has got its moment. */
const taken = (pace: Pace, limits: MinuteLimits, tokens: number, now: number) =>
  takeMoment([{ pace, limits }], { ...asking, tokens }, now).paces[0] as Pace;

test('a provider that has refused nothing is not paced', () => {
  expect(isPaced(null, none, begin)).toBe(false);
  expect(isPaced(freshPace, none, begin)).toBe(false);
  expect(isPaced(null, { ...none, calls: 60 }, begin)).toBe(true);
});

describe('a limited rate', () => {
  test('is left alone for as long as the provider asks, then asked at the rate that it took', () => {
    const pace = refused(freshPace, { ...refusal, retryAfterMs: 4_000 }, begin);
    const moments = momentsOf(pace, none, 8, begin);
    expect(moments[0]).toBe(begin + 4_000);
    // 96 % of 480 a minute.
    for (const [i, at] of moments.entries())
      expect(at).toBeCloseTo(begin + 4_000 + (i * 60_000) / 460.8, 0);
  });

  test('is the sum of what the processes had answered, whose calls were refused together', () => {
    let pace = refused(freshPace, { ...refusal, served: served(4, begin) }, begin + 10);
    pace = refused(pace, { ...refusal, served: served(3, begin) }, begin + 12);
    pace = refused(pace, { ...refusal, served: served(5, begin), process: 'b' }, begin + 15);
    expect(pace).toMatchObject({ perMinute: expect.closeTo(460.8), refusals: 1 });
  });

  test('counts what a process had answered of which no call was refused', () => {
    const first = { ...refusal, begunAt: begin + 450, served: served(2, begin) };
    const pace = refused(freshPace, first, begin + 500);
    const times = [-600, 100, 200, 300, 400, 499, 600].map((ms) => begin + ms);
    const call = { begunAt: begin + 499, served: times, process: 'b' };
    const known = answered(pace, none, call, begin + 700);
    expect(known.perMinute).toBeCloseTo((120 + 300) * 0.96);
    expect(answered(known, none, call, begin + 900).perMinute).toBe(known.perMinute);
  });

  test('is not counted anew for a process that begins later', () => {
    const pace = refused(freshPace, refusal, begin);
    const known = { ...pace, perMinute: 900 };
    const later = begin + 60_000;
    const call = { begunAt: later, served: [], process: 'new' };
    expect(answered(known, none, call, later + 100).perMinute).toBe(900);
  });

  test('falls once for a wave of refusals, and rises only while it is used up', () => {
    const first = refused(freshPace, refusal, begin);
    const served = answered(first, none, callAt(begin + 2_000), begin + 3_000);
    const again = { ...refusal, begunAt: begin + 5_000 };
    const second = refused(served, again, begin + 5_100);
    const third = refused(second, again, begin + 5_200);
    expect(second.perMinute).toBeCloseTo(460.8 * 0.92);
    expect(third.perMinute).toBe(second.perMinute);
    const later = begin + 9_000;
    expect(answered(third, none, callAt(later - 500), later).perMinute).toBe(third.perMinute);
    const used = taken({ ...third, nextAt: later }, none, 1_000, later);
    expect(answered(used, none, callAt(later - 500), later).perMinute).toBeGreaterThan(
      third.perMinute ?? 0,
    );
  });

  test('gets longer pauses while no call is answered', () => {
    let pace = refused(freshPace, refusal, begin, 0);
    const pauses = [pace.pausedUntil - begin];
    for (let i = 1; i < 9; i++) {
      const now = pace.pausedUntil;
      pace = refused(pace, { ...refusal, begunAt: now }, now + 1, 0);
      pauses.push(pace.pausedUntil - now - 1);
    }
    expect(pauses).toEqual([1.25, 2.5, 5, 10, 20, 40, 60, 60, 60].map((s) => s * 1_000));
  });

  test('is forgotten after ten minutes', () => {
    const pace = refused(freshPace, refusal, begin);
    expect(isPaced(pace, none, begin + 599_000)).toBe(true);
    expect(isPaced(pace, none, begin + 601_000)).toBe(false);
    expect(momentsOf(pace, none, 3, begin + 601_000)).toEqual(Array(3).fill(begin + 601_000));
  });
});

describe('an outage', () => {
  const down = { ...refusal, isRateLimited: false };

  test('is probed by one call a second before many follow', () => {
    const pace = refused(freshPace, { ...down, retryAfterMs: 30_000 }, begin);
    const moments = momentsOf(pace, none, 1_000, begin);
    const until = (ms: number) => moments.filter((at) => at <= begin + 30_000 + ms).length;
    expect(until(-1)).toBe(0);
    expect(until(9_000)).toBe(10);
    expect(until(120_000)).toBe(1_000);
  });

  test('is one for calls that begin one after the other, as they had got their moments before it', () => {
    let pace = freshPace;
    for (let i = 0; i < 8; i++)
      pace = refused(pace, { ...down, begunAt: begin + 20 * i }, begin + 20 * i + 15, 0);
    expect(pace.refusals).toBe(1);
    expect(pace.pausedUntil).toBe(begin + 15 + 2_000);
  });

  test('ends with the first answer to a call that began after it', () => {
    const pace = refused(freshPace, down, begin);
    expect(answered(pace, none, callAt(begin - 1), begin + 1).pausedUntil).toBe(pace.pausedUntil);
    const over = answered(pace, none, callAt(begin + 2_500), begin + 3_000);
    expect(isPaced(over, none, begin + 3_000)).toBe(false);
  });
});

test('limits of calls and tokens a minute are kept to', () => {
  expect(momentsOf(freshPace, { calls: 60, tokens: null }, 3, begin)).toEqual(
    [0, 1_000, 2_000].map((ms) => begin + ms),
  );
  expect(momentsOf(freshPace, { calls: 60, tokens: 30_000 }, 3, begin)).toEqual(
    [0, 2_000, 4_000].map((ms) => begin + ms),
  );
});

test('a limit of calls a minute is kept to after an answer', () => {
  const limits = { calls: 60, tokens: null };
  const pace = taken(freshPace, limits, 1_000, begin);
  const after = answered(pace, limits, callAt(begin), begin + 100);
  expect(momentsOf(after, limits, 1, begin + 100)).toEqual([begin + 1_000]);
});

test('tokens that a call took beyond those expected hold up the next ones', () => {
  const limits = { calls: null, tokens: 10_000 };
  const pace = taken(freshPace, limits, 1_124, begin);
  const [at] = momentsOf(spent(pace, limits, 'one', 4_100 - 1_124), limits, 1, begin);
  expect(at).toBe(begin + 0.41 * 60_000);
});

test('a call whose moment is too late gets none', () => {
  const pace = refused(freshPace, { ...refusal, retryAfterMs: 60_000 }, begin);
  const limited = [{ pace, limits: none }];
  expect(takeMoment(limited, { ...asking, until: begin + 2_000 }, begin)).toMatchObject({
    kind: 'late',
    at: begin + 60_000,
    paces: [pace],
  });
});

test('a refusal that is ahead of the clock holds no calls: the clock was set back since', () => {
  const pace = refused(freshPace, { ...refusal, retryAfterMs: 2_000 }, begin + 90 * 60_000);
  expect(momentsOf(pace, none, 1, begin)).toEqual([begin]);
});

test('moments that a clock has set which was set back since do not hold calls', () => {
  const day = 86_400_000;
  const pace = { ...refused(freshPace, refusal, begin + day), nextAt: begin + day };
  expect(momentsOf(pace, { calls: 60, tokens: 60 }, 1, begin)).toEqual([begin]);
});

test('a provider of unknown limits gets ten calls at once, and a thousand within six seconds', () => {
  const cold = new ColdStart();
  const delays = Array.from({ length: 1_000 }, () => cold.delay(0));
  expect(delays.filter((ms) => ms === 0)).toHaveLength(10);
  expect(delays[30]).toBeGreaterThan(500);
  expect(delays[999]).toBeLessThan(6_000);
  expect(cold.delay(5_000)).toBeLessThan(1_000);
  expect(cold.delay(700_000)).toBe(0);
});

test('a burst after single calls begins as slowly as the first one', () => {
  const cold = new ColdStart();
  for (let second = 0; second < 1_000; second++) expect(cold.delay(second * 1_000)).toBe(0);

  const delays = Array.from({ length: 60 }, () => cold.delay(1_010_000));

  expect(delays.filter((ms) => ms === 0)).toHaveLength(10);
  expect(delays[59]).toBeGreaterThan(1_000);
});

test('calls that come in even intervals are not delayed, nor those that become twice as many', () => {
  const cold = new ColdStart();
  const delays: number[] = [];
  for (let now = 0; now < 60_000; now += now < 30_000 ? 40 : 20) delays.push(cold.delay(now));
  expect(Math.max(...delays)).toBeLessThan(100);
});

test.each([50, 300, 2_000])(
  '60 tasks of 4 turns at 8 calls a second, each answered after %i ms, take about 30 seconds, with few refusals',
  (answerMs) => {
    const { seconds, refusals } = simulated({ tasks: 60, turns: 4, perSecond: 8, answerMs });
    expect(seconds).toBeLessThan(36 + (4 * answerMs) / 1_000);
    expect(refusals).toBeLessThan(15);
  },
);

/** One process and a provider with a sliding window, which says nothing about when to come back. */
function simulated(given: { tasks: number; turns: number; perSecond: number; answerMs: number }) {
  let pace = freshPace;
  const cold = new ColdStart();
  const served: number[] = [];
  const begun: number[] = [];
  let [refusals, end] = [0, 0];
  const events: { at: number; run: () => void }[] = [];
  const schedule = (at: number, run: () => void) => events.push({ at, run });
  const ask = (turnsLeft: number, now: number, hasWaited = false): void => {
    if (!isPaced(pace, none, begin + now)) {
      const at = now + cold.delay(now);
      schedule(at, () => (pace.refusedAt > begin + now ? ask : call)(turnsLeft, at));
      return;
    }
    const { kind, at, paces } = takeMoment(
      [{ pace, limits: none }],
      { ...asking, hasWaited },
      begin + now,
    );
    pace = paces[0] as Pace;
    schedule(at - begin, () => {
      if (kind === 'moment') call(turnsLeft, at - begin);
      else ask(turnsLeft, at - begin, true);
    });
  };
  const call = (turnsLeft: number, now: number): void => {
    if (begin + now < pace.pausedUntil) {
      ask(turnsLeft, now);
      return;
    }
    begun.push(now);
    if (served.filter((at) => at > now - 1_000).length < given.perSecond) {
      served.push(now);
      schedule(now + given.answerMs, () => {
        const done = now + given.answerMs;
        if (isPaced(pace, none, begin + done))
          pace = answered(pace, none, callAt(begin + now), begin + done);
        end = done;
        if (turnsLeft > 1) ask(turnsLeft - 1, done);
      });
      return;
    }
    refusals += 1;
    schedule(now + 5, () => {
      begun.splice(begun.indexOf(now), 1);
      const own = begun.map((at) => begin + at);
      const ended = { ...refusal, begunAt: begin + now, served: own };
      pace = refused(pace, ended, begin + now + 5, 0);
      ask(turnsLeft, now + 5);
    });
  };
  for (let i = 0; i < given.tasks; i++) ask(given.turns, 0);
  while (events.length > 0) {
    events.sort((a, b) => a.at - b.at);
    events.shift()?.run();
  }
  expect(served).toHaveLength(given.tasks * given.turns);
  return { seconds: end / 1_000, refusals };
}
