/** A process that is the only one, and so need not say to anybody that it is there. */
import type { Clock } from '../kernel/clock.ts';
import { newId } from '../kernel/ids.ts';
import { type Processes, shownProcess } from './processes.ts';

export function createLoneProcess(parts: {
  clock: Clock;
  roles: readonly string[];
  version: string;
  skills: readonly string[];
}): Pick<Processes, 'claimed' | 'list'> {
  const { clock, roles, version, skills } = parts;
  const id = newId();
  const startedAt = clock.now();
  let lastClaimAt = 0;
  return {
    claimed() {
      lastClaimAt = clock.now();
    },
    async list() {
      const seenAt = clock.now();
      return [shownProcess({ id, roles, version, skills, startedAt, seenAt, lastClaimAt })];
    },
  };
}
