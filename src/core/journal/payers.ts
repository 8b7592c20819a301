/** The owners whose budgets pay for the calls of models of a job, and those for whom the calls are counted. */

import type { Handle } from '../../adapters/database/database.ts';
import { clockSkewMs, listCreatedBetween } from '../agents/removed-agents.ts';
import { findScheduledJobOf } from '../scheduled-runs/scheduled-runs.ts';
import type { UsageOwner } from '../usage/reservations.ts';
import type { JobAndAgent } from './agent-tree-queries.ts';
import type { JournalJob } from './step-rows.ts';

/** The owners whose use of models is counted beside those that pay. */
export function countedOwnersOf(job: JournalJob): UsageOwner[] {
  const skill = `${job.skill_category}/${job.skill_version}/${job.skill_name}`;
  return [
    { kind: 'user', id: job.user_id },
    { kind: 'skill', id: skill },
  ];
}

/**
 * The same owners; an agent that was deleted and replaced by a newer one of its id does not charge the newer one, but
 * the kind to which the usage of the deleted one was moved. Read for each call: an agent can be replaced while a call
 * of its job is under way.
 */
export async function payersOf(
  db: Handle,
  { organization_id, created_at }: JournalJob,
  owners: readonly UsageOwner[],
  now: number,
): Promise<UsageOwner[]> {
  const ids = owners.flatMap(({ kind, id }) => (kind === 'agent' ? [id] : []));
  const age = { after: created_at + clockSkewMs, until: now };
  const found = await listCreatedBetween(db, { organizationId: organization_id, ids, ...age });
  const newer = found.map(({ id }) => id);
  return owners.map((owner) =>
    owner.kind === 'agent' && newer.includes(owner.id)
      ? { kind: 'deleted_agent', id: owner.id }
      : owner,
  );
}

/** The owners whose budgets pay for the calls of a job; `above` are the job and those above it. */
export async function ownersOf(
  db: Handle,
  job: JournalJob,
  above: readonly JobAndAgent[],
): Promise<UsageOwner[]> {
  const agents = new Set([job.agent_id, ...above.map(({ agent_id }) => agent_id)]);
  const owners: UsageOwner[] = [
    ...[...agents].map((id) => ({ kind: 'agent' as const, id })),
    { kind: 'api_key', id: job.api_key_id },
  ];
  if (job.trigger_type !== 'scheduled') return owners;
  const id = await findScheduledJobOf(db, job.id);
  return id === undefined ? owners : [...owners, { kind: 'scheduled_job', id }];
}
