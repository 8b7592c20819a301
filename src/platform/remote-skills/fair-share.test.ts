import { expect, test } from 'vitest';
import { mayTake } from './fair-share.ts';

/** How many each of the organizations gets, one after the other. */
const taken = (organizations: number, max: number) => {
  const shares: number[] = [];
  for (let i = 0; i < organizations; i++) {
    const others = shares.reduce((sum, share) => sum + share, 0);
    let own = 0;
    while (mayTake({ own, all: others + own, max })) own += 1;
    shares.push(own);
  }
  return shares;
};

test('an organization takes at most half of what the others leave, rounded up', () => {
  expect(taken(6, 40)).toEqual([20, 10, 5, 3, 1, 1]);
  expect(taken(1, 1)).toEqual([1]);
  expect(mayTake({ own: 0, all: 40, max: 40 })).toBe(false);
});
