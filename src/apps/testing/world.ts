/** What a run and its child runs share, and the skills that they find. */
import type { Runnable, Skills } from '../../core/executors/skill-calls.ts';
import type { SkillDefinition } from '../../core/skills/definition.ts';
import type { RunSettings } from '../../core/skills/settings.ts';
import { compileSchema } from '../../kernel/json-schema.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import type { Memories } from './memory.ts';
import { isDefinition, outputOf, type Script, scriptedSkill } from './script.ts';
import { settingsOf } from './settings.ts';
import { ScriptError } from './types.ts';

const none = (): null => null;

export interface World {
  readonly script: Script;
  readonly signal: AbortSignal;
  readonly newMemoryId: () => string;
  memories: Memories;
  /** Requests without an answer, also those whose errors the skill has caught. */
  readonly faults: ScriptError[];
  childJobs: number;
}

/** The skills that `ctx.callSkill` finds: the skill itself, and what stands in for others. */
export function skillsOf(world: World, definition: SkillDefinition): Skills {
  const own = runnableOf(definition);
  return {
    get(key) {
      if (key === keyOf(definition)) return own;
      try {
        const scripted = scriptedSkill(world.script, 'ctx.callSkill', key);
        if (isDefinition(scripted)) return runnableOf(scripted);
        return {
          run: (input) => outputOf(scripted, input),
          validateInput: none,
          validateOutput: none,
        };
      } catch (error) {
        if (error instanceof ScriptError) world.faults.push(error);
        throw error;
      }
    },
  };
}

/** Throws where a required one is missing. */
export function settingsOfCalled({ script }: World, skill: string): RunSettings | undefined {
  const { skills = {} } = script.options;
  const scripted = Object.hasOwn(skills, skill) ? skills[skill] : undefined;
  const settings = isDefinition(scripted) ? settingsOf(script.options, scripted) : undefined;
  if (settings === undefined || !('missing' in settings)) return settings;
  throw Object.assign(permanentError(settings.missing), { code: 'missing_credentials' });
}

function runnableOf(definition: SkillDefinition): Runnable {
  return {
    run: (input, ctx) => definition.run(input, ctx),
    validateInput: compileSchema(definition.parameters),
    validateOutput: compileSchema(definition.output),
  };
}

export function keyOf({ category, version, name }: SkillDefinition): string {
  return `${category}/${version}/${name}`;
}
