/**
 * Limits the questions during which services keep their calls open. Each occupies a loaded run, a connection and perhaps
 * a process until a person answers. An organization may hold at most half of what the others leave free.
 */
import { mayTake } from './fair-share.ts';

/** Questions of one source, and of all. */
const sourceMax = 100;
const processMax = 400;

export interface HeldQuestions {
  /** Takes a place; returns the function that releases it, or the reason why there is none. */
  hold(sourceId: string, organizationId: string): (() => void) | string;
}

export function createHeldQuestions(): HeldQuestions {
  const counts = new Map<string, number>();
  const count = (name: string) => counts.get(name) ?? 0;
  const add = (name: string, n: 1 | -1) => {
    const sum = count(name) + n;
    if (sum > 0) counts.set(name, sum);
    else counts.delete(name);
  };
  return {
    hold(sourceId, organizationId) {
      const own = JSON.stringify([organizationId]);
      const ownOfSource = JSON.stringify([organizationId, sourceId]);
      const names = ['', sourceId, own, ownOfSource];
      if (!mayTake({ own: count(ownOfSource), all: count(sourceId), max: sourceMax })) {
        return `${count(ownOfSource)} calls of it wait for a person already`;
      }
      if (!mayTake({ own: count(own), all: count(''), max: processMax })) {
        return `${count(own)} calls wait for a person already`;
      }
      for (const name of names) add(name, 1);
      return () => {
        for (const name of names) add(name, -1);
      };
    },
  };
}
