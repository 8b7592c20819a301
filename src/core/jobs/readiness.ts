/**
 * Whether a starter, which is a scheduled job or a trigger, could start a job now: its
 * key, its skill, the key's scopes, its input and its agent. It reads, and changes nothing.
 */

import type { refusalCodes } from '../../adapters/http/schemas.ts';
import { type Caller, hasScopes, requireScopes } from '../../kernel/caller.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { Priority } from '../../kernel/priority.ts';
import type { AgentState, Agents } from '../agents/agents.ts';
import type { ApiKeys } from '../api-keys/api-keys.ts';
import {
  lookupOf,
  type Skill,
  type SkillColumns,
  type SkillRegistry,
  skillKey,
} from '../skills/registry.ts';

/** A scheduled job or a trigger: it starts jobs in the name of its key (`keyOfRuns`). */
export interface Starter extends SkillColumns {
  readonly organization_id: string;
  readonly api_key_id: string;
  readonly agent_id: string;
}

/** Why a starter could start no job. */
export interface Obstacle {
  /** As the API would refuse the same request. */
  readonly code: (typeof refusalCodes)[number];
  /** The end of a sentence. */
  readonly reason: string;
}

export interface Ready {
  readonly caller: Caller;
  readonly skill: Skill;
  /** Of its agent. */
  readonly priority: Priority | null;
}

export type Readiness = Ready | Obstacle;

/** The slices that decide whether a starter could start a job. */
export interface StarterSlices {
  readonly apiKeys: ApiKeys;
  readonly skills: SkillRegistry;
  readonly agents: Agents;
}

/**
 * The readiness of each starter, in order; each key is looked up once. `inputOf` gives the input as
 * JSON text; where it is left out, inputs are not checked.
 */
export function readinessOf<S extends Starter>(
  { apiKeys, skills, agents }: StarterSlices,
  starters: readonly S[],
  inputOf?: (starter: S) => string,
): Promise<Readiness[]> {
  const callers = new Map<string, Promise<Caller | undefined>>();
  const callerOf = (id: string) => {
    const known = callers.get(id) ?? apiKeys.callerById(id);
    callers.set(id, known);
    return known;
  };
  return Promise.all(
    starters.map(async (starter) => {
      const lookup = lookupOf(starter.organization_id, starter);
      return readinessFrom(starter, {
        caller: await callerOf(starter.api_key_id),
        skill: skills.findActive(...lookup) ?? skills.notFound(...lookup),
        agent: await agents.stateOf(starter.organization_id, starter.agent_id),
        input: inputOf?.(starter),
      });
    }),
  );
}

/** Checks in the order in which the API would refuse the same request. */
function readinessFrom(
  starter: Starter,
  found: {
    caller: Caller | undefined;
    skill: Skill | PlatformError;
    agent: AgentState;
    input: string | undefined;
  },
): Readiness {
  const { caller, skill, agent, input } = found;
  const name = skillKey(starter.skill_category, starter.skill_version, starter.skill_name);
  if (caller === undefined) {
    return { code: 'invalid_api_key', reason: 'its key is revoked or expired' };
  }
  if (skill instanceof PlatformError) {
    const reason = skill.message.replace('No active', 'no active');
    return { code: 'skill_not_found', reason };
  }
  if (!hasScopes(caller.scopes, skill.requiredScopes)) {
    const reason = `its key lacks a scope that ${name} requires`;
    return { code: 'insufficient_scope', reason };
  }
  const [issue] = (input === undefined ? null : skill.input.issuesOf(JSON.parse(input))) ?? [];
  if (issue !== undefined) {
    const reason = `its input does not fit the schema of ${name}: ${issue.field} ${issue.issue}`;
    return { code: 'validation_error', reason };
  }
  if (agent.status === 'paused') {
    return { code: 'agent_paused', reason: `the agent ${starter.agent_id} is paused` };
  }
  return { caller, skill, priority: agent.priority };
}

/** For each starter, in order, why it could start no job now, as the API shows it; see `readinessOf`. */
export async function refusalsOf<S extends Starter>(
  slices: StarterSlices,
  starters: readonly S[],
  inputOf?: (starter: S) => string,
) {
  const readiness = await readinessOf(slices, starters, inputOf);
  return readiness.map((found) => ({ refusal: 'code' in found ? refusalOf(found) : null }));
}

function refusalOf({ code, reason }: Obstacle) {
  return { code, message: reason.charAt(0).toUpperCase() + reason.slice(1) };
}

/** The scopes that a skill requires. Those of a vanished skill are unknown, but each requires its category. */
function requiredScopes(
  skills: SkillRegistry,
  organizationId: string,
  starter: SkillColumns,
): readonly string[] {
  const skill = skills.definition(...lookupOf(organizationId, starter));
  return skill?.requiredScopes ?? [starter.skill_category];
}

/** Throws `403` unless the caller may run the skill that a starter names. */
export function requireSkillScopes(
  skills: SkillRegistry,
  caller: Caller,
  starter: SkillColumns,
): void {
  requireScopes(caller.scopes, requiredScopes(skills, caller.organizationId, starter));
}
