import type { Context } from '../../core/context/context.ts';
import { LoadedSkills } from '../../core/executors/loaded-skills.ts';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import { SkillRegistry } from '../../core/skills/registry.ts';
import type { Processes } from '../../platform/processes/processes.ts';

/** The registry of skills, with those that the executors of this process have loaded. */
export async function composeSkills(
  context: Context,
  executors: ExecutorPool | null,
  processes: Pick<Processes, 'skills'> | null,
) {
  const skills = new SkillRegistry(context);
  if (executors === null) await skills.refresh();
  else await skills.register(executors.definitions, processes?.skills());
  return { skills, loadedSkills: new LoadedSkills(executors, skills) };
}
