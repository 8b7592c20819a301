/**
 * What a claim writes to its journal: only while it holds its job, and repeated while the database is
 * unavailable. A claim that lost its lease writes nothing.
 */
import type { Insertable } from 'kysely';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { JobStepsTable } from '../../adapters/database/tables.ts';
import type { Clock } from '../../kernel/clock.ts';
import { lazily } from '../../kernel/lazy.ts';
import { retryWhileUnavailable } from '../../kernel/retry-while-unavailable.ts';
import { newResults, type Results, readSteps } from './record-pages.ts';
import { recordTold } from './record-queries.ts';
import { type Records, readRecords } from './records.ts';
import { findLastStep, insertSteps } from './step-queries.ts';
import type { JournalJob } from './step-rows.ts';

/** The delay between tries while the database is unavailable, and their number. */
const retryMs = 500;
const triesMax = 120;

export interface ClaimDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Whether the claim still holds its job. If so, it does until the transaction ends. */
  isHeld(tx: Transaction, job: JournalJob): Promise<boolean>;
}

/** The claim no longer holds its job, so it can record nothing. */
export class LeaseLostError extends Error {
  constructor() {
    super('the job was given to another worker');
    this.name = 'LeaseLostError';
  }
}

export interface ClaimRecords extends Records {
  readonly results: Results;
}

/** A claim whose journal is open. */
export interface OpenClaim {
  readonly deps: ClaimDeps;
  readonly job: JournalJob;
  /** The number of the job's next step. */
  numbers(): Promise<{ next: number }>;
  /** What earlier claims have recorded, and this one since. */
  records(): Promise<ClaimRecords>;
  /**
   * The places of the ends that the run has got and whose rows do not have them yet, by number. The next write
   * records them, before the run can go on to something that is on record.
   */
  readonly told: Map<number, number>;
  /** Steps that have failed and are not on record yet; the next write records them, too. */
  readonly failures: Insertable<JobStepsTable>[];
  /** The numbers of those that may be on record already, without a confirmation. */
  readonly unconfirmed: Set<number>;
  /** Whether the run may be unloaded without another write. */
  readonly waits: { hasBegun: boolean };
}

export function openClaim(deps: ClaimDeps, job: JournalJob): OpenClaim {
  const { read } = deps.database;
  return {
    deps,
    job,
    numbers: lazily(async () => ({
      next: 1 + (job.epoch === 1 ? 0 : ((await findLastStep(read, { job_id: job.id }))?.n ?? 0)),
    })),
    records: lazily(async () => {
      const rows = job.epoch === 1 ? [] : await readSteps(read, job.id);
      return { ...readRecords(rows, job.attempt), results: newResults(read, job.id, rows) };
    }),
    told: new Map(),
    failures: [],
    unconfirmed: new Set(),
    waits: { hasBegun: false },
  };
}

/** Does work of a journal, and again for a minute while the database is unavailable. */
export function patiently<T>(work: (tries: number) => Promise<T>): Promise<T> {
  return retryWhileUnavailable(work, retryMs, (tries) => tries < triesMax);
}

/**
 * Runs a unit while the claim holds its job. A connection may break after the commit and before its
 * confirmation, so a repeated unit checks for its own rows.
 */
export async function write<T>(
  { deps, job, told, failures, unconfirmed }: OpenClaim,
  unit: (tx: Transaction, isRepeat: boolean) => Promise<T>,
): Promise<T> {
  const ends = [...told].map(([n, place]) => ({ job_id: job.id, n, told: place }));
  const failed = failures.splice(0);
  const mayBeKnown = failed.some(({ n }) => unconfirmed.has(n));
  try {
    const result = await patiently((tries) =>
      deps.database.write(async (tx) => {
        if (!(await deps.isHeld(tx, job))) return null;
        if (ends.length > 0) await recordTold(tx, ends);
        if (failed.length > 0) await insertNew(tx, job, failed, tries > 1 || mayBeKnown);
        return { value: await unit(tx, tries > 1) };
      }),
    );
    if (result === null) throw new LeaseLostError();
    for (const { n } of ends) told.delete(n);
    for (const { n } of failed) unconfirmed.delete(n);
    return result.value;
  } catch (error) {
    for (const { n } of failed) unconfirmed.add(n);
    failures.unshift(...failed);
    throw error;
  }
}

/**
 * Records what waits for the next write, because the run was unloaded and makes none. A claim that lost its
 * lease does not.
 */
export async function writeRest(claim: OpenClaim): Promise<void> {
  if (claim.told.size === 0 && claim.failures.length === 0) return;
  try {
    await write(claim, async () => {});
  } catch (error) {
    if (!(error instanceof LeaseLostError)) throw error;
  }
}

/** Inserts steps; a repeated try only those that are not there. */
async function insertNew(
  tx: Transaction,
  job: JournalJob,
  rows: readonly Insertable<JobStepsTable>[],
  isRepeat: boolean,
): Promise<void> {
  const known = isRepeat ? await readSteps(tx, job.id) : [];
  const numbers = new Set(known.map(({ n }) => n));
  const missing = rows.filter(({ n }) => !numbers.has(n));
  if (missing.length > 0) await insertSteps(tx, missing);
}
