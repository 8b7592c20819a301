/** Validates a trigger before it is stored: agent, skill or event, scopes and mappings. */
import { requireSkillScopes } from '../../core/jobs/readiness.ts';
import { lookupOf, type SkillColumns, type SkillRegistry } from '../../core/skills/registry.ts';
import { type Caller, requireScopes } from '../../kernel/caller.ts';
import { invalid } from '../../kernel/errors.ts';
import { eventScopes } from '../run-events/bounds.ts';
import { withField } from './evaluate-key.ts';
import { eventKeyField } from './event-target.ts';
import { requireJobKey } from './job-key.ts';
import type { TriggerChanges } from './triggers.schemas.ts';
import type { TriggerRow } from './triggers.store.ts';
import type { TriggersParts } from './triggers.ts';

/** Throws for the agent or the skill (404), the scopes (403) or a mapping (400) of a trigger. */
export async function requireValidTrigger(
  { agents, skills, mappings }: TriggersParts,
  caller: Caller,
  after: TriggerRow,
  before?: TriggerRow,
): Promise<void> {
  if (after.agent_id !== before?.agent_id) {
    await agents.stateOf(caller.organizationId, after.agent_id);
  }
  requireValidTarget(skills, caller, after, before);
  if (after.mapping !== null && after.mapping !== before?.mapping) {
    await mappings.check(caller.organizationId, after.mapping);
  }
  const { event_key_mapping: ofKey } = after;
  if (ofKey !== null && ofKey !== before?.event_key_mapping) {
    await withField(eventKeyField, mappings.check(caller.organizationId, ofKey));
  }
  if (after.job_key !== before?.job_key) await requireJobKey(mappings, after);
}

/** Throws `403` unless the caller may run the trigger's skill, or send its event. */
export function requireTriggerScopes(
  skills: SkillRegistry,
  caller: Caller,
  trigger: TriggerRow,
): void {
  if (trigger.event_name === null) requireSkillScopes(skills, caller, trigger);
  else requireScopes(caller.scopes, eventScopes);
}

/** Validates the skill of a trigger (`requireValidSkill`), or, for an event, that the caller has its scope. */
export function requireValidTarget(
  skills: SkillRegistry,
  caller: Caller,
  after: TriggerRow,
  before?: TriggerRow,
): void {
  if (after.event_name === null) {
    // A trigger with an event has no validated skill, so its skill counts as new.
    const earlier = before?.event_name === null ? before : undefined;
    requireValidSkill(skills, caller, after, earlier);
    return;
  }
  requireScopes(caller.scopes, eventScopes);
}

/**
 * Throws for the skill of a trigger. A new skill must be active (404), and the caller must be allowed to
 * run it (403).
 */
function requireValidSkill(
  skills: SkillRegistry,
  caller: Caller,
  after: SkillColumns,
  before?: SkillColumns,
): void {
  const isNew = before === undefined || !isSameSkill(before, after);
  if (isNew) skills.active(...lookupOf(caller.organizationId, after));
  requireSkillScopes(skills, caller, after);
}

/** `400` for a new trigger that names only the category or only the name of a skill. */
export function refuseHalfSkill({
  skill_category,
  skill_name,
  skill_version,
}: TriggerChanges): void {
  const isNamed = skill_category !== undefined && skill_name !== undefined;
  if (isNamed || (skill_category ?? skill_name ?? skill_version) === undefined) return;
  const field = skill_category === undefined ? 'skill_category' : 'skill_name';
  throw invalid(field, 'is required: a skill is named by its category and its name');
}

function isSameSkill(a: SkillColumns, b: SkillColumns): boolean {
  return (
    a.skill_category === b.skill_category &&
    a.skill_name === b.skill_name &&
    a.skill_version === b.skill_version
  );
}
