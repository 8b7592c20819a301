/**
 * What a claim writes to its journal: only while it holds its job, and repeated while the database is
 * unavailable. A claim that lost its lease writes nothing.
 */
import type { Conversations } from '../conversations/conversations.ts';
import type { Database, Handle, Transaction } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import { lazily } from '../kernel/lazy.ts';
import { retryWhileUnavailable } from '../kernel/retry-while-unavailable.ts';
import type { Usage } from '../models/model.ts';
import type { UsageOwner } from '../usage/reservations.ts';
import type { ThinkingJob } from './step-rows.ts';
import { findLastStep } from './steps.store.ts';

/** The delay between tries to write while the database is unavailable, and their number. */
const retryMs = 500;
const triesMax = 120;

export interface JournalDeps {
  readonly database: Database;
  readonly conversations: Pick<Conversations, 'dataOf'>;
  readonly clock: Clock;
  /** Whether the claim still holds its job. If so, it does until the transaction ends. */
  isHeld(tx: Transaction, job: ThinkingJob): Promise<boolean>;
  /** The scheduled job that a job is a run of. */
  scheduledJobOf(db: Handle, jobId: string): Promise<string | undefined>;
  /** Called with the reported usage of a call, after the commit. */
  observe?(job: ThinkingJob, usage: Usage): void;
}

/** The claim no longer holds its job, so it can record nothing. */
export class LeaseLostError extends Error {
  constructor() {
    super('the job was given to another worker');
    this.name = 'LeaseLostError';
  }
}

/** A claim whose journal is open. */
export interface OpenClaim {
  readonly deps: JournalDeps;
  readonly job: ThinkingJob;
  /** The owners whose budgets pay for the calls of the job. */
  owners(): Promise<UsageOwner[]>;
  /** The number of the job's next step. */
  numbers(): Promise<{ next: number }>;
  /** Generations that this claim has opened. */
  readonly opened: Set<string>;
}

export function openClaim(deps: JournalDeps, job: ThinkingJob): OpenClaim {
  const { read } = deps.database;
  return {
    deps,
    job,
    owners: lazily(() => ownersOf(deps, read, job)),
    numbers: lazily(async () => ({
      next: 1 + (job.epoch === 1 ? 0 : ((await findLastStep(read, { job_id: job.id }))?.n ?? 0)),
    })),
    opened: new Set(),
  };
}

/** The owners whose budgets pay for the calls of a job. */
export async function ownersOf(
  { scheduledJobOf }: Pick<JournalDeps, 'scheduledJobOf'>,
  db: Handle,
  job: ThinkingJob,
): Promise<UsageOwner[]> {
  const owners: UsageOwner[] = [
    { kind: 'agent', id: job.agent_id },
    { kind: 'api_key', id: job.api_key_id },
  ];
  if (job.trigger_type !== 'scheduled') return owners;
  const id = await scheduledJobOf(db, job.id);
  return id === undefined ? owners : [...owners, { kind: 'scheduled_job', id }];
}

/**
 * Runs a unit while the claim holds its job. A connection may break after the commit and before its
 * confirmation, so a repeated unit checks for its own rows.
 */
export async function write<T>(
  { deps, job }: OpenClaim,
  unit: (tx: Transaction, isRepeat: boolean) => Promise<T>,
): Promise<T> {
  const result = await retryWhileUnavailable(
    (tries) =>
      deps.database.write(async (tx) =>
        (await deps.isHeld(tx, job)) ? { value: await unit(tx, tries > 1) } : null,
      ),
    retryMs,
    (tries) => tries < triesMax,
  );
  if (result === null) throw new LeaseLostError();
  return result.value;
}
