/** The skill that forms memories of a conversation. */
export const formationSkill = {
  skill_category: 'agent',
  skill_version: 'v1.0',
  skill_name: 'form-memories',
} as const;

/** Whether a job forms memories. */
export function formsMemories(job: {
  readonly skill_category: string;
  readonly skill_version: string;
  readonly skill_name: string;
}): boolean {
  const { skill_category: category, skill_version: version, skill_name: name } = formationSkill;
  return (
    job.skill_category === category && job.skill_version === version && job.skill_name === name
  );
}
