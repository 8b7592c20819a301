/** Reloads of the skills, put together: the sets of this process, and the turns of a cluster's processes. */

import { RedisLock } from '../../adapters/redis/lock.ts';
import { LocalReloads } from '../../core/executors/reload.ts';
import { Reloads } from '../../core/executors/reload-turns.ts';
import type { SkillSets } from '../../core/executors/skill-sets.ts';
import type { LoadedSkill } from '../../core/skills/sources/modules.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

/** Milliseconds after which the lock of a leader that has died is free. */
const lockMs = 15_000;

export function composeReloads(
  { cluster, isAuthoring = false }: Parts,
  sets: SkillSets | null,
  { context, skills, processes }: Slices,
): Reloads {
  const members = processes.cluster;
  const register = async (definitions: readonly LoadedSkill[]) => {
    // The other processes learn first which skills are loaded here now.
    await members?.beat();
    await skills.register(definitions, members?.skills());
  };
  const local = sets === null ? null : new LocalReloads(context, sets, register, isAuthoring);
  const workers = async () => {
    const live = await processes.local.list();
    return live.filter(({ roles }) => roles.includes('worker')).map(({ id }) => id);
  };
  const others = cluster && {
    lock: new RedisLock(cluster.redis, 'skillwright:reload', lockMs),
    workers,
  };
  return new Reloads(context, processes.local.id, local, others);
}
