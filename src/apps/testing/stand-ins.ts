/** The skills of a test: the one that it tests, and what stands in for others. */

import type { Runnable, Skills } from '../../core/executors/child/part.ts';
import type { RunRequest } from '../../core/executors/run.ts';
import type { SkillDefinition } from '../../core/skills/definition.ts';
import type { SkillFacts } from '../../core/skills/fields.ts';
import { skillKey, skillKeyParts } from '../../core/skills/registry.ts';
import { compileSchema } from '../../kernel/json-schema.ts';
import { isDefinition, outputOf, type Script, scriptedSkill } from './script.ts';

const none = (): null => null;

export class StandIns {
  readonly definition: SkillDefinition;
  /** `category/version/name` of the tested skill. */
  readonly key: string;
  readonly #script: Script;
  /** The job of the tested skill, once it is accepted. */
  mainJob: string | undefined;

  constructor(definition: SkillDefinition, script: Script) {
    const { category, version, name } = definition;
    this.definition = definition;
    this.key = skillKey(category, version, name);
    this.#script = script;
  }

  /** All of them, as a platform registers them. */
  facts(): SkillFacts[] {
    const { children = {}, skills = {}, attempts: maxAttempts = 1 } = this.#script.options;
    const all = { ...skills, ...children, [this.key]: this.definition };
    return Object.entries(all).map(([key, standIn]) => {
      const [category, version, name] = skillKeyParts(key);
      const own = { category, version, name, maxAttempts };
      if (!isDefinition(standIn)) {
        return { ...own, displayName: name, description: key, parameters: {}, output: {} };
      }
      const { run: _, ...facts } = standIn;
      return { ...facts, ...own };
    });
  }

  /** The skills that a run finds: its own, and those that it calls. */
  skillsOf({ skill, context: { jobId, path } }: RunRequest): Skills {
    const isChild = path === undefined && jobId !== this.mainJob;
    const verb = isChild ? 'ctx.run' : path === undefined ? undefined : 'a tool call';
    const own = verb === undefined ? runnableOf(this.definition) : this.find(verb, skill);
    return { get: (key) => (key === skill ? own : this.find('ctx.callSkill', key)) };
  }

  /** What stands in for a skill that `verb` names. */
  find(verb: Parameters<typeof scriptedSkill>[1], key: string): Runnable {
    return runnableOf(this.#script.answer(() => scriptedSkill(this.#script, verb, key)));
  }
}

function runnableOf(standIn: unknown): Runnable {
  if (!isDefinition(standIn)) {
    const run = (input: unknown) => outputOf(standIn, input);
    return { run, validateInput: none, validateOutput: none };
  }
  return {
    run: (input, ctx) => standIn.run(input, ctx),
    validateInput: compileSchema(standIn.parameters),
    validateOutput: compileSchema(standIn.output),
  };
}
