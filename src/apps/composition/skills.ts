import type { Context } from '../../core/context/context.ts';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import { SkillRegistry, skillKey } from '../../core/skills/registry.ts';
import type { LoadedSkill } from '../../core/skills/sources/modules.ts';
import type { Processes } from '../../platform/processes/processes.ts';

/** The registry of skills, with those that the executors of this process have loaded. */
export async function composeSkills(
  context: Context,
  executors: Pick<ExecutorPool, 'definitions'> | null,
  processes: Pick<Processes, 'skills'> | null,
) {
  const skills = new SkillRegistry(context);
  if (executors === null) await skills.refresh();
  else await skills.register(executors.definitions, processes?.skills());
  const loaded = fromDefinitions(
    () => executors?.definitions ?? [],
    (definitions) =>
      new Set(definitions.map(({ category, version, name }) => skillKey(category, version, name))),
  );
  // Every process can call a service outside.
  const isLoaded = (skill: string) => loaded().has(skill) || skills.sourceOf(skill) !== null;
  return { skills, isLoaded };
}

/** A value derived from the loaded definitions, computed again after a reload has replaced them. */
function fromDefinitions<T>(
  definitions: () => readonly LoadedSkill[],
  make: (definitions: readonly LoadedSkill[]) => T,
): () => T {
  let made: { readonly of: readonly LoadedSkill[]; readonly value: T } | undefined;
  return () => {
    const now = definitions();
    if (made?.of !== now) made = { of: now, value: make(now) };
    return made.value;
  };
}
