/** Which skills this process can run: those that its executors have loaded, and those of services outside. */
import { type SkillRegistry, skillKey } from '../skills/registry.ts';
import type { ExecutorPool } from './pool.ts';

export class LoadedSkills {
  readonly #executors: ExecutorPool | null;
  readonly #skills: SkillRegistry;
  /** Of a reload, which replaces the definitions. */
  #definitions: ExecutorPool['definitions'] = [];
  #keys: ReadonlySet<string> = new Set();

  /** `executors` is null in a process that runs none. */
  constructor(executors: ExecutorPool | null, skills: SkillRegistry) {
    this.#executors = executors;
    this.#skills = skills;
  }

  /** Whether this process can run a skill, named `category/version/name`; each can call a service outside. */
  canRun(skill: string): boolean {
    return this.#loadedKeys().has(skill) || this.#skills.sourceOf(skill) !== null;
  }

  #loadedKeys(): ReadonlySet<string> {
    const definitions = this.#executors?.definitions ?? this.#definitions;
    if (definitions !== this.#definitions) {
      this.#definitions = definitions;
      this.#keys = new Set(
        definitions.map(({ category, version, name }) => skillKey(category, version, name)),
      );
    }
    return this.#keys;
  }
}
