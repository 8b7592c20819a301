/**
 * The values of settings for the runs of a job: for the job's own run before it starts, for each skill that it
 * calls, and for each tool. A skill that declares no settings costs nothing here.
 */
import { permanentError } from '../../../kernel/permanent-error.ts';
import { type Skill, skillKeyParts } from '../../skills/registry.ts';
import type { MissingSettings, RunSettings, SkillSettings } from '../../skills/settings.ts';
import type { ClaimedJob } from '../jobs.store.ts';
import type { AttemptOutcome } from '../states.ts';
import type { Runs } from './attempt.ts';

/** Delay of a job whose settings could not be read, because the database is unavailable. */
const unreadMs = 2_000;

type Owner = Pick<ClaimedJob, 'organization_id'>;

/** The settings for the job's own run, or how its attempt ends because it cannot start. */
export async function settingsOfRun(
  settings: SkillSettings,
  job: Owner,
  skill: Skill,
): Promise<{ readonly settings: RunSettings } | { readonly outcome: AttemptOutcome }> {
  try {
    const found = await settings.forRun(job.organization_id, skill);
    if (!('missing' in found)) return { settings: found };
    const failed = { kind: 'failed', code: 'missing_credentials', retryable: false } as const;
    return { outcome: { ...failed, message: found.missing } };
  } catch {
    return { outcome: { kind: 'deferred', afterMs: unreadMs } };
  }
}

/** The settings for a skill that a run calls, named `category/version/name`; undefined if it declares none. */
export async function findSettings(
  { skills, skillSettings }: Runs,
  job: Owner,
  name: string,
): Promise<RunSettings | MissingSettings | undefined> {
  const skill = skills.definition(job.organization_id, ...skillKeyParts(name));
  return skill?.hasConfig ? skillSettings.forRun(job.organization_id, skill) : undefined;
}

/** Like `findSettings`; rejects with `missing_credentials` where one is missing. */
export async function settingsOfCalled(
  runs: Runs,
  job: Owner,
  name: string,
): Promise<RunSettings | undefined> {
  const found = await findSettings(runs, job, name);
  if (found === undefined || !('missing' in found)) return found;
  throw Object.assign(permanentError(found.missing), { code: 'missing_credentials' });
}
