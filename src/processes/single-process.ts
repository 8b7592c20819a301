/** The list of processes of an embedded platform: this process alone, without heartbeats. */
import type { Clock } from '../kernel/clock.ts';
import { newId } from '../kernel/ids.ts';
import { type Processes, processView } from './processes.ts';

export function createSingleProcess(parts: {
  clock: Clock;
  roles: readonly string[];
  version: string;
  skills: readonly string[];
}): Pick<Processes, 'claimed' | 'begun' | 'list'> {
  const { clock, roles, version, skills } = parts;
  const id = newId();
  const startedAt = clock.now();
  let lastClaimAt = 0;
  let lastJobAt = 0;
  return {
    claimed() {
      lastClaimAt = clock.now();
    },
    begun() {
      lastJobAt = clock.now();
    },
    async list() {
      const seenAt = clock.now();
      return [
        processView({ id, roles, version, skills, startedAt, seenAt, lastClaimAt, lastJobAt }),
      ];
    },
  };
}
