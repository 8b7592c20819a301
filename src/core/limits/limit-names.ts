/** The names of the limits and pauses that operators set. Each is a gate of jobs. Pure. */
import { type SkillColumns, skillKey } from '../skills/registry.ts';

/** Between the limit and whose work it counts; no name of a skill has it. */
export const ofWhom = ' = ';

export const pauseOfSkill = (skill: string) => `pause of ${skill}`;
export const pauseOfOrganization = (id: string) => `pause of organization${ofWhom}${id}`;
export const pauseOfAgent = (organizationId: string, id: string) =>
  `pause of agent queue${ofWhom}${organizationId} ${id}`;
export const limitOfOrganization = (id: string) => `max_concurrency of organization${ofWhom}${id}`;
export const limitOfAgent = (organizationId: string, id: string) =>
  `max_concurrency of agent${ofWhom}${organizationId} ${id}`;
export const limitOfKey = (id: string) => `max_concurrency of API key${ofWhom}${id}`;

/** Whether a name is of the limit or the pause of an agent of the organization. */
export const isOfAgent = (organizationId: string, name: string) =>
  name.startsWith(pauseOfAgent(organizationId, '')) ||
  name.startsWith(limitOfAgent(organizationId, ''));

/** What decides which of them work has. */
interface LimitedWork extends SkillColumns {
  readonly organization_id: string;
  readonly agent_id: string;
  readonly api_key_id: string;
}

/** The names of those that operators may set for work, pauses first. */
export function settableLimits(work: LimitedWork): string[] {
  const { organization_id, agent_id, api_key_id } = work;
  const skill = skillKey(work.skill_category, work.skill_version, work.skill_name);
  return [
    pauseOfOrganization(organization_id),
    pauseOfSkill(skill),
    pauseOfAgent(organization_id, agent_id),
    limitOfOrganization(organization_id),
    limitOfAgent(organization_id, agent_id),
    limitOfKey(api_key_id),
  ];
}
