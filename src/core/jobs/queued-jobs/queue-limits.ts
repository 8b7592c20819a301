/**
 * The limits and pauses of organizations, API keys, agents and skills, as operators set them. What is held waits at a gate of
 * `places.ts`; runs that go on are not stopped.
 */
import type { Caller } from '../../../kernel/caller.ts';
import { notFound } from '../../../kernel/errors.ts';
import type { Agents } from '../../agents/agents.ts';
import type { ApiKeys } from '../../api-keys/api-keys.ts';
import {
  limitOfAgent,
  limitOfKey,
  limitOfOrganization,
  pauseOfAgent,
  pauseOfOrganization,
  pauseOfSkill,
} from '../../limits/limit-names.ts';
import { type SkillRegistry, skillKey } from '../../skills/registry.ts';
import type { Places } from '../gates/places.ts';

interface QueueLimitsParts {
  readonly agents: Agents;
  readonly apiKeys: ApiKeys;
  readonly skills: SkillRegistry;
  readonly places: Places;
}

export class QueueLimits {
  readonly #parts: QueueLimitsParts;

  constructor(parts: QueueLimitsParts) {
    this.#parts = parts;
  }

  async ofOrganization(id: string) {
    await this.#requireOrganization(id);
    return this.#state(pauseOfOrganization(id), limitOfOrganization(id));
  }

  /** Limits how many runs of an organization go on at a time; null for any number. `404` for an unknown one. */
  async limitOrganization(id: string, max: number | null) {
    await this.#requireOrganization(id);
    await this.#parts.places.setPlaces(limitOfOrganization(id), max);
    return this.ofOrganization(id);
  }

  /** Lets no run of an organization begin until it is resumed. */
  async pauseOrganization(id: string, isPaused: boolean) {
    await this.#requireOrganization(id);
    await this.#pause(pauseOfOrganization(id), isPaused);
    return this.ofOrganization(id);
  }

  /** `404` for an unknown key. */
  async requireKey(id: string): Promise<void> {
    await this.#parts.apiKeys.organizationOf(id);
  }

  /** `404 skill_not_found` for a skill that was never registered. */
  requireSkill(skill: readonly [string, string, string]): void {
    this.#parts.skills.registeredAnywhere(...skill);
  }

  /** The same as `limitOrganization` for the jobs of an API key. */
  async limitKey(id: string, max: number | null) {
    await this.requireKey(id);
    await this.#parts.places.setPlaces(limitOfKey(id), max);
    return { max_concurrency: max };
  }

  /** Lets no run of a version of a skill begin; `404 skill_not_found` where it was never registered. */
  async pauseSkill(skill: readonly [string, string, string], isPaused: boolean) {
    this.requireSkill(skill);
    await this.#pause(pauseOfSkill(skillKey(...skill)), isPaused);
    return { paused: isPaused };
  }

  async ofAgent({ organizationId }: Caller, id: string) {
    await this.#parts.agents.find(organizationId, id);
    return this.#state(pauseOfAgent(organizationId, id), limitOfAgent(organizationId, id));
  }

  /** The same as `limitOrganization` for the jobs of an agent; `403` for a caller that may not change the agent. */
  async limitAgent(caller: Caller, id: string, max: number | null) {
    await this.#parts.agents.requireWritable(caller, id);
    const limit = limitOfAgent(caller.organizationId, id);
    if (max !== null) this.#parts.places.settings.requireRoomForAgent(caller.organizationId, limit);
    await this.#parts.places.setPlaces(limit, max);
    return this.ofAgent(caller, id);
  }

  /** Lets no run of an agent begin; pausing needs no scope, as pausing the agent itself does not. */
  async pauseAgent(caller: Caller, id: string, isPaused: boolean) {
    await this.#parts.agents.find(caller.organizationId, id);
    const pause = pauseOfAgent(caller.organizationId, id);
    if (isPaused) this.#parts.places.settings.requireRoomForAgent(caller.organizationId, pause);
    await this.#pause(pause, isPaused);
    return this.ofAgent(caller, id);
  }

  #state(pause: string, limit: string) {
    const { byName } = this.#parts.places.settings;
    return { paused: byName.has(pause), max_concurrency: byName.get(limit) ?? null };
  }

  #pause(name: string, isPaused: boolean): Promise<void> {
    return this.#parts.places.setPlaces(name, isPaused ? 0 : null);
  }

  async #requireOrganization(id: string): Promise<void> {
    const known = await this.#parts.apiKeys.organizations();
    if (!known.includes(id)) throw notFound('Organization');
  }
}
