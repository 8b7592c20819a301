/**
 * Change: moves the beginning of a queued job, or changes its priority. It makes a skill run at another time, so it needs
 * the skill's scopes.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import { type Caller, requireScopes } from '../../kernel/caller.ts';
import { invalid, notFound, PlatformError } from '../../kernel/errors.ts';
import { requireMoment } from '../../kernel/moment.ts';
import { type Priority, priorities } from '../../kernel/priority.ts';
import type { Context } from '../context/context.ts';
import { keepNamedFiles } from '../files/named-files.ts';
import { lookupOf, type SkillRegistry } from '../skills/registry.ts';
import type { Places } from './gates/places.ts';
import { findJob, type JobRow } from './jobs.store.ts';
import { refuseMoment } from './timing.ts';
import { setPriority, setRunAt } from './turns/later.store.ts';
import { hintInTime } from './turns/later.ts';

/** The fields of a job that a client may change while it is queued. */
export interface JobChange {
  /** A timestamp; null for as soon as possible. */
  readonly run_at?: string | null | undefined;
  readonly priority?: Priority | undefined;
}

/** Throws `403 insufficient_scope` for a caller that may not run the job's skill. */
export function requireChangeable(skills: SkillRegistry, caller: Caller, job: JobRow): void {
  const skill = skills.definition(...lookupOf(caller.organizationId, job));
  // Of a skill that is gone the category is what most skills require.
  requireScopes(caller.scopes, skill?.requiredScopes ?? [job.skill_category]);
}

async function refusal(tx: Transaction, { organization_id, id }: JobRow): Promise<PlatformError> {
  const job = await findJob(tx, organization_id, id);
  if (job === undefined) return notFound('Job');
  return job.status === 'queued'
    ? invalid('run_at', 'must lie before the moment at which the job expires')
    : new PlatformError('conflict', `The job is ${job.status}: only a queued one can be changed`);
}

/** Throws `400` for an invalid change, `409 conflict` for a job that is not queued. */
export async function changeJob(
  { config, database, clock, queue }: Context,
  places: Places,
  job: JobRow,
  { run_at, priority: name }: JobChange,
): Promise<void> {
  if (run_at === undefined && name === undefined)
    throw invalid('run_at', 'or priority is required');
  const priority = name && priorities.indexOf(name);
  const now = clock.now();
  const runAt = run_at == null ? now : requireMoment('run_at', run_at);
  if (run_at != null) refuseMoment('run_at', runAt, now);
  await database.write(async (tx) => {
    if (priority !== undefined && !(await setPriority(tx, { id: job.id, priority }))) {
      throw await refusal(tx, job);
    }
    if (run_at === undefined) return;
    const changed = await setRunAt(tx, { id: job.id, run_at: runAt });
    if (changed === undefined) throw await refusal(tx, job);
    await places.release(tx, [changed]);
    const { organization_id, input } = job;
    const use = { organization_id, input, run_at: runAt };
    await keepNamedFiles(tx, use, config.fileRetentionDays);
    // The queue may know an earlier hint by the number of claims alone.
    tx.afterCommit(() => hintInTime(queue, changed, `${changed.epoch}-at${runAt}`, runAt, now));
  });
}
