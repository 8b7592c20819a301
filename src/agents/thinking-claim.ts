/** The claim of a job whose run calls models: its journal, and who pays for the calls. */
import type { Conversations } from '../conversations/conversations.ts';
import type { Handle } from '../database/database.ts';
import type { ClaimDeps, OpenClaim } from '../journal/claim-writes.ts';
import type { JournalJob } from '../journal/step-rows.ts';
import { lazily } from '../kernel/lazy.ts';
import type { Usage } from '../models/model.ts';
import type { Prices } from '../models/prices.ts';
import type { UsageOwner } from '../usage/reservations.ts';

export interface GenerationDeps extends ClaimDeps {
  readonly conversations: Pick<Conversations, 'dataOf'>;
  /** The scheduled job that a job is a run of. */
  scheduledJobOf(db: Handle, jobId: string): Promise<string | undefined>;
  /** The agents of a job and of those above it: each pays for what it has another one do. */
  agentsAbove(db: Handle, jobId: string): Promise<string[]>;
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
  /** What this claim has recorded of the job. */
  readonly noted: { agentVersion: number | null };
  /** Generations that this claim has opened. */
  readonly opened: Set<string>;
  /** Bytes of the whole results of tools that this claim has kept. */
  readonly kept: { bytes: number };
}

/** Shares the numbers and the records of the claim. */
export function openThinkingClaim(deps: GenerationDeps, claim: OpenClaim): ThinkingClaim {
  return {
    ...claim,
    deps,
    owners: lazily(() => ownersOf(deps, deps.database.read, claim.job)),
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

/** The owners whose budgets pay for the calls of a job. */
export async function ownersOf(
  { scheduledJobOf, agentsAbove }: Pick<GenerationDeps, 'scheduledJobOf' | 'agentsAbove'>,
  db: Handle,
  job: JournalJob,
): Promise<UsageOwner[]> {
  const agents = new Set([job.agent_id, ...(await agentsAbove(db, job.id))]);
  const owners: UsageOwner[] = [
    ...[...agents].map((id) => ({ kind: 'agent' as const, id })),
    { kind: 'api_key', id: job.api_key_id },
  ];
  if (job.trigger_type !== 'scheduled') return owners;
  const id = await scheduledJobOf(db, job.id);
  return id === undefined ? owners : [...owners, { kind: 'scheduled_job', id }];
}
