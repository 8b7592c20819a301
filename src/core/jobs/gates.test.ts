import { expect, test } from 'vitest';
import { lowerPriorityOf, passGates } from './gates.ts';

test.each([1, 2, 3, 4, 8, 16])(
  'where %i organizations go round, each has one of eight turns for a lower priority',
  (organizations) => {
    for (let first = 1; first <= organizations; first++) {
      const lower = Array.from({ length: 800 }, (_, i) =>
        lowerPriorityOf(first + i * organizations),
      );

      const counts = [1, 2].map((priority) => lower.filter((one) => one === priority).length);

      for (const count of counts) expect(Math.abs(count - 50)).toBeLessThan(10);
    }
  },
);

test('work that has a place passes where others wait, but not where no place is free', () => {
  const gates = [
    { name: 'a', limit: 1 },
    { name: 'b', limit: 1 },
  ];
  const own = new Set(['a\nx']);
  const usesWith = (taken: number) =>
    new Map([
      ['a', { taken: 1, isContested: true }],
      ['b', { taken, isContested: true }],
    ]);

  const [free, full] = [0, 1].map((taken) => passGates([{ id: 'x', gates }], usesWith(taken), own));

  expect(free).toEqual({ passed: [{ id: 'x', gates: gates.slice(1) }], held: [] });
  expect(full).toEqual({ passed: [], held: [{ id: 'x', gate: 'b' }] });
});
