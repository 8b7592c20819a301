/**
 * The limits of gates: which gates work has, by the definition of its skill and by what operators have set, and how many places
 * each has now.
 */
import { settableLimits } from '../../limits/limit-names.ts';
import type { LimitSettings } from '../../limits/limit-settings.ts';
import { type SkillRegistry, skillKey } from '../../skills/registry.ts';
import { type Gate, type GatedWork, gatesOf, isOfStarts, placesOf } from './gates.ts';

const noGates: readonly Gate[] = [];

export class GateLimits {
  readonly #skills: SkillRegistry;
  readonly #settings: LimitSettings;

  constructor(skills: SkillRegistry, settings: LimitSettings) {
    this.#skills = skills;
    this.#settings = settings;
  }

  /** Whether any work has gates. */
  areAny(): boolean {
    return this.#skills.limits.size > 0 || this.#settings.byName.size > 0;
  }

  /** The gates of work; none for most. */
  gatesOf(work: GatedWork): readonly Gate[] {
    if (!this.areAny()) return noGates;
    const skill = skillKey(work.skill_category, work.skill_version, work.skill_name);
    const ofSkill = this.#skills.limits.get(skill);
    const gates = this.#setGatesOf(work);
    if (ofSkill === undefined) return gates;
    const all = [...gates, ...gatesOf(ofSkill, work)];
    return work.status === 'waiting' ? all.filter(({ name }) => !isOfStarts(name)) : all;
  }

  /** The gates of work that operators have set. */
  #setGatesOf(work: GatedWork): readonly Gate[] {
    const { byName } = this.#settings;
    if (byName.size === 0) return noGates;
    return settableLimits(work).flatMap((name) => {
      const limit = byName.get(name);
      return limit === undefined ? [] : [{ name, limit }];
    });
  }

  /** The places of a gate; any number where its limit was removed. */
  placesOf(gate: string): number {
    return placesOf(gate, this.#skills.limits, this.#settings.byName);
  }

  /** The skills that have limits: `category/version/name`. */
  limitedSkills(): readonly string[] {
    return [...this.#skills.limits.keys()];
  }

  /** Whether a refusal pauses all of a skill. */
  slowsDown(skill: string): boolean {
    return this.#skills.limits.get(skill)?.some((limit) => limit.afterRefusal) === true;
  }
}
