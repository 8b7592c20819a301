/** Reloads of the skills, put together: the sets of this process, and the turns of a cluster's processes. */

import { RedisLock } from '../../adapters/redis/lock.ts';
import type { SkillSets } from '../../core/executors/skill-sets.ts';
import { LocalReloads } from '../../platform/reloads/reload.ts';
import { Reloads } from '../../platform/reloads/reload-turns.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

/** Milliseconds after which the lock of a leader that has died is free. */
const lockMs = 15_000;

export function composeReloads(
  { cluster, isAuthoring = false }: Parts,
  sets: SkillSets | null,
  { context, skills, processes }: Slices,
): Reloads {
  const local =
    sets === null ? null : new LocalReloads(context, sets, skills, processes.cluster, isAuthoring);
  const lock = cluster && new RedisLock(cluster.redis, 'skillwright:reload', lockMs);
  return new Reloads(context, processes.local, local, lock);
}
