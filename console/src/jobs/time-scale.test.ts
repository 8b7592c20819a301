import { expect, test } from 'vitest';
import { without } from './intervals.ts';
import type { Span } from './spans.ts';
import { timeScale } from './time-scale.ts';

const day = 24 * 3_600_000;

/** An attempt that waits in between. */
const attempt = (from: number, to: number | null, ...idle: [number, number][]): Span => ({
  ...{ key: 'a', kind: 'attempt', label: 'Attempt 1', tone: 'good', outcome: '', error: null },
  ...{ from, to, idle: idle.map(([a, b]) => ({ from: a, to: b })) },
});

const roomOf = (scale: ReturnType<typeof timeScale>, from: number, to: number) =>
  scale.percent(to) - scale.percent(from);

test('without a long wait an axis is to scale', () => {
  const scale = timeScale([attempt(0, 3_000, [1_000, 2_500])], 3_000);

  expect(scale.stretches).toEqual([{ from: 0, to: 3_000, left: 0, right: 100, isFolded: false }]);
  expect(scale.percent(750)).toBe(25);
  expect(scale.momentAt(25)).toBe(750);
});

test('two seconds of work keep more than half of the axis beside a wait of three days', () => {
  const scale = timeScale([attempt(0, 3 * day + 2_000, [1_000, 3 * day + 1_000])], 3 * day + 2_000);

  const worked = roomOf(scale, 0, 1_000) + roomOf(scale, 3 * day + 1_000, 3 * day + 2_000);
  expect(worked).toBeGreaterThan(50);
  expect(scale.stretches.map(({ isFolded }) => isFolded)).toEqual([false, true, false]);
  expect(scale.percent(0)).toBe(0);
  expect(scale.percent(3 * day + 2_000)).toBe(100);
});

test('a wait that is still open is folded up to now', () => {
  const open = attempt(0, null, [2_000, Number.POSITIVE_INFINITY]);

  const scale = timeScale([open], 3 * day);

  expect(roomOf(scale, 0, 2_000)).toBeGreaterThan(50);
  expect(scale.stretches.at(-1)).toMatchObject({ from: 2_000, to: 3 * day, isFolded: true });
});

test('many long waits share their room, and short ones stay to scale', () => {
  const idle = Array.from({ length: 99 }, (_, i): [number, number] => [
    i * day + 10,
    i === 50 ? i * day + 12 : (i + 1) * day,
  ]);
  const scale = timeScale([attempt(0, 99 * day, ...idle)], 99 * day);

  const folded = scale.stretches.filter(({ isFolded }) => isFolded);
  expect(folded.length).toBe(98);
  const room = folded.reduce((sum, { left, right }) => sum + right - left, 0);
  expect(room).toBeLessThan(50);
});

test('a place on the axis and the moment there belong together, folded or not', () => {
  const scale = timeScale(
    [attempt(500, 5 * day, [1_000, 2 * day], [2 * day + 40, 4 * day])],
    5 * day,
  );

  for (const percent of [0, 10, 33.3, 50, 77, 100]) {
    expect(scale.percent(scale.momentAt(percent))).toBeCloseTo(percent, 6);
  }
});

test('a job that has not begun has an axis to scale', () => {
  const queued: Span = { ...attempt(0, null), kind: 'queued' };

  expect(timeScale([queued], day).percent(day / 2)).toBe(50);
  expect(timeScale([], 5).percent(5)).toBe(0);
});

test('taking intervals out of others leaves what lies between', () => {
  const left = without(
    [
      { from: 0, to: 10 },
      { from: 20, to: 30 },
    ],
    [
      { from: 2, to: 4 },
      { from: 8, to: 22 },
      { from: 29, to: 50 },
    ],
  );

  expect(left).toEqual([
    { from: 0, to: 2 },
    { from: 4, to: 8 },
    { from: 22, to: 29 },
  ]);
});
