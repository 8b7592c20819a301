/** The claim of a job whose run calls models: its journal, and who pays for the calls. */

import type { Handle } from '../../adapters/database/database.ts';
import type { Prices } from '../../adapters/models/prices.ts';
import { lazily } from '../../kernel/lazy.ts';
import { clockSkewMs, listCreatedBetween } from '../agents/removed-agents.ts';
import type { Context } from '../context/context.ts';
import type { Conversations } from '../conversations/conversations.ts';
import type { OpenClaim } from '../journal/claim-writes.ts';
import type { JournalJob } from '../journal/step-rows.ts';
import type { UsageOwner } from '../usage/reservations.ts';
import { topOf } from './agent-tree.ts';
import { type JobAndAgent, listJobsAbove } from './agent-tree-queries.ts';

/** What the calls of models of a process share. */
export interface CallParts {
  readonly context: Pick<Context, 'config' | 'database' | 'clock' | 'observers'>;
  readonly conversations: Conversations;
  readonly prices: Prices;
  readonly scheduledJobOf: ScheduledJobOf;
}

/** The scheduled job that a job is a run of; undefined when the row of that run has been deleted. */
export type ScheduledJobOf = (db: Handle, jobId: string) => Promise<string | undefined>;

export class ThinkingClaim {
  readonly parts: CallParts;
  readonly journal: OpenClaim;
  readonly job: JournalJob;
  /** The owners whose budgets pay for the calls of the job. */
  readonly owners: () => Promise<UsageOwner[]>;
  /** The job at the top of the tree of agents in which the job works. */
  readonly top: () => Promise<JobAndAgent>;
  /** The version of the agent that this claim has recorded of the job. */
  agentVersion: number | null = null;
  /** Generations that this claim has opened. */
  readonly opened = new Set<string>();
  /** Bytes of the whole results of tools that this claim has kept. */
  keptBytes = 0;

  constructor(parts: CallParts, journal: OpenClaim) {
    const { job } = journal;
    const { read } = parts.context.database;
    const above = lazily(() => listJobsAbove(read, job.id));
    this.parts = parts;
    this.journal = journal;
    this.job = job;
    this.owners = lazily(async () => ownersOf(read, job, await above(), parts.scheduledJobOf));
    this.top = lazily(async () => topOf(await above()) ?? job);
  }
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

/** The owners whose budgets pay for the calls of a job; `above` are the job and those above it. */
export async function ownersOf(
  db: Handle,
  job: JournalJob,
  above: readonly JobAndAgent[],
  scheduledJobOf: ScheduledJobOf,
): Promise<UsageOwner[]> {
  const agents = new Set([job.agent_id, ...above.map(({ agent_id }) => agent_id)]);
  const owners: UsageOwner[] = [
    ...[...agents].map((id) => ({ kind: 'agent' as const, id })),
    { kind: 'api_key', id: job.api_key_id },
  ];
  if (job.trigger_type !== 'scheduled') return owners;
  const id = await scheduledJobOf(db, job.id);
  return id === undefined ? owners : [...owners, { kind: 'scheduled_job', id }];
}
