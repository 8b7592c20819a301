/** The processes of a cluster; an embedded platform is one process. */
import { opensSealedSecrets } from '../../adapters/database/signing-secrets.ts';
import { skillKey } from '../../core/skills/registry.ts';
import type { Clock } from '../../kernel/clock.ts';
import { createProcesses, type Processes } from '../../platform/processes/processes.ts';
import { createSingleProcess } from '../../platform/processes/single-process.ts';
import type { Parts } from './parts.ts';

export interface ComposedProcesses {
  /** Null where the platform is embedded. */
  readonly cluster: Processes | null;
  /** Told what this process does. */
  readonly local: Pick<Processes, 'id' | 'claimed' | 'begun' | 'list'>;
}

/** Records the first heartbeat. */
export async function composeProcesses(
  { config, version, database, executors, cluster }: Parts,
  clock: Clock,
): Promise<ComposedProcesses> {
  const skills = () =>
    (executors?.definitions ?? []).map(({ category, version, name }) =>
      skillKey(category, version, name),
    );
  const facts = { roles: [...config.roles], version, skills };
  if (cluster === null) return { cluster: null, local: createSingleProcess({ clock }, facts) };
  const capabilities = [opensSealedSecrets];
  const processes = createProcesses({ database, clock, facts: { ...facts, capabilities } });
  await processes.beat();
  return { cluster: processes, local: processes };
}
