/** Whether a run may call a skill: by its code as a step, or by its model as a tool. */
import { permanentError } from '../../../kernel/permanent-error.ts';
import { skillKeyParts } from '../../skills/registry.ts';
import type { Attempt } from './attempt.ts';
import { findSettings, settingsOfCalled } from './run-settings.ts';

/** Checked before the call is on record, so that a retry calls again once the settings have values. */
export async function mayCall({ runs, job }: Attempt, skill: string): Promise<boolean> {
  if (!(await runs.admission.mayCall(job, skill))) {
    const parts = skillKeyParts(skill);
    if (runs.skills.definition(job.organization_id, ...parts) !== undefined) return false;
    throw permanentError(`there is no skill ${skill}`);
  }
  await settingsOfCalled(runs, job, skill);
  return true;
}

/** Why the run's model may not call a skill, null if it may. */
export async function refusalOf({ runs, job }: Attempt, skill: string) {
  if (!(await runs.admission.mayCall(job, skill))) {
    return { code: 'insufficient_scope', message: `This run may not use ${skill}` };
  }
  const found = await findSettings(runs, job, skill);
  if (found === undefined || !('missing' in found)) return null;
  return { code: 'missing_credentials', message: found.missing };
}
