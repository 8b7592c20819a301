/** The claim of a job whose run calls models: its journal, and who pays for the calls. */

import type { Handle } from '../../adapters/database/database.ts';
import type { Usage } from '../../adapters/models/model.ts';
import type { Prices } from '../../adapters/models/prices.ts';
import { lazily } from '../../kernel/lazy.ts';
import type { Conversations } from '../conversations/conversations.ts';
import type { ClaimDeps, OpenClaim } from '../journal/claim-writes.ts';
import type { JournalJob } from '../journal/step-rows.ts';
import type { UsageOwner } from '../usage/reservations.ts';
import { type JobAndAgent, type TreeDeps, topOf } from './agent-tree.ts';
import { listCreatedBetween } from './agents.store.ts';
import { clockSkewMs } from './removed-agents.ts';

export interface GenerationDeps extends ClaimDeps, TreeDeps {
  readonly conversations: Conversations;
  /** The scheduled job that a job is a run of. */
  scheduledJobOf(db: Handle, jobId: string): Promise<string | undefined>;
  readonly prices: Prices;
  /** UTF-8 bytes of the text that each of a job's calls of models is on record to have streamed, by step. */
  streamedBytesOf(db: Handle, jobId: string): Promise<ReadonlyMap<number, number>>;
  /** Called with the reported usage of a call and its cost in nano-dollars, after the commit. */
  observe?(job: JournalJob, usage: Usage, cost: number | null): void;
}

export interface ThinkingClaim extends OpenClaim {
  readonly deps: GenerationDeps;
  /** The owners whose budgets pay for the calls of the job. */
  owners(): Promise<UsageOwner[]>;
  /** The job at the top of the tree of agents in which the job works. */
  top(): Promise<JobAndAgent>;
  /** What this claim has recorded of the job. */
  readonly noted: { agentVersion: number | null };
  /** Generations that this claim has opened. */
  readonly opened: Set<string>;
  /** Bytes of the whole results of tools that this claim has kept. */
  readonly kept: { bytes: number };
}

/** Shares the numbers and the records of the claim. */
export function openThinkingClaim(deps: GenerationDeps, claim: OpenClaim): ThinkingClaim {
  const { job } = claim;
  const { read } = deps.database;
  const jobsAbove = lazily(() => deps.jobsAbove(read, job.id));
  return {
    ...claim,
    deps,
    owners: lazily(async () => ownersOf({ ...deps, jobsAbove }, read, job)),
    top: lazily(async () => topOf(await jobsAbove()) ?? job),
    noted: { agentVersion: null },
    opened: new Set(),
    kept: { bytes: 0 },
  };
}

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

/** The owners whose budgets pay for the calls of a job. */
export async function ownersOf(
  { scheduledJobOf, jobsAbove }: Pick<GenerationDeps, 'scheduledJobOf' | 'jobsAbove'>,
  db: Handle,
  job: JournalJob,
): Promise<UsageOwner[]> {
  const above = await jobsAbove(db, job.id);
  const agents = new Set([job.agent_id, ...above.map(({ agent_id }) => agent_id)]);
  const owners: UsageOwner[] = [
    ...[...agents].map((id) => ({ kind: 'agent' as const, id })),
    { kind: 'api_key', id: job.api_key_id },
  ];
  if (job.trigger_type !== 'scheduled') return owners;
  const id = await scheduledJobOf(db, job.id);
  return id === undefined ? owners : [...owners, { kind: 'scheduled_job', id }];
}
