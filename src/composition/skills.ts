import type { ExecutorPool } from '../executors/pool.ts';
import type { Processes } from '../processes/processes.ts';
import { createSkillRegistry, skillKey } from '../skills/registry.ts';
import type { Foundation } from './parts.ts';

/** The registry of skills, with those that the executors of this process have loaded. */
export async function composeSkills(
  { database, clock }: Pick<Foundation, 'database' | 'clock'>,
  executors: Pick<ExecutorPool, 'definitions'> | null,
  processes: Pick<Processes, 'skills'> | null,
) {
  const skills = createSkillRegistry(database, clock);
  if (executors === null) await skills.refresh();
  else await skills.register(executors.definitions, processes?.skills());
  const loaded = new Set(
    executors?.definitions.map(({ category, version, name }) => skillKey(category, version, name)),
  );
  return { skills, isLoaded: (skill: string) => loaded.has(skill) };
}
