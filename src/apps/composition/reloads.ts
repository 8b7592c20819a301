/** Reloads of the skills, put together: the sets of this process, and the turns of a cluster's processes. */

import type { Redis } from '../../adapters/redis/redis.ts';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import type { SkillSets } from '../../core/executors/skill-sets.ts';
import { createReload, faultsOf } from '../../core/skills/reload.ts';
import { createReloads, type ReloadLock, type Reloads } from '../../core/skills/reload-turns.ts';
import type { LoadedSkill } from '../../core/skills/sources/modules.ts';
import type { Clock } from '../../kernel/clock.ts';
import { newId } from '../../kernel/ids.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

/** Milliseconds after which the lock of a leader that has died is free. */
const lockMs = 15_000;
const lockKey = 'skillwright:reload';

export function composeReloads(
  { cluster, log, isAuthoring = false }: Pick<Parts, 'cluster' | 'log' | 'isAuthoring'>,
  sets: SkillSets | null,
  { skills, processes }: Pick<Slices, 'skills' | 'processes'>,
  clock: Clock,
): Reloads {
  const members = processes.cluster;
  const register = async (definitions: readonly LoadedSkill[]) => {
    // The other processes learn first which skills are loaded here now.
    await members?.beat();
    await skills.register(definitions, members?.skills());
  };
  const reload =
    sets === null
      ? null
      : createReload<ExecutorPool>({ skills: sets, register, clock, log, isForced: isAuthoring });
  return createReloads({
    id: processes.local.id,
    reload,
    faults: () => (sets === null ? [] : faultsOf(sets)),
    clock,
    cluster:
      cluster === null
        ? null
        : {
            bus: cluster.bus,
            lock: createLock(cluster.redis),
            async workers() {
              const live = await processes.local.list();
              return live.filter(({ roles }) => roles.includes('worker')).map(({ id }) => id);
            },
          },
  });
}

/** A key with an expiry; only its holder renews and removes it. */
function createLock({ commands }: Pick<Redis, 'commands'>): ReloadLock {
  const token = newId();
  const ifMine = (command: string) =>
    `if redis.call('get', KEYS[1]) == ARGV[1] then return ${command} end`;
  return {
    acquire: async () => (await commands.set(lockKey, token, 'PX', lockMs, 'NX')) === 'OK',
    async renew() {
      const command = ifMine(`redis.call('pexpire', KEYS[1], ARGV[2])`);
      await commands.eval(command, 1, lockKey, token, lockMs);
    },
    async release() {
      await commands.eval(ifMine(`redis.call('del', KEYS[1])`), 1, lockKey, token);
    },
  };
}
