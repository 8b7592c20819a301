/**
 * The writes of a claim to its journal: accepted only while it holds its job, and repeated while the database is
 * unavailable. A claim that lost its lease writes nothing.
 */
import type { Insertable } from 'kysely';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { JobStepsTable } from '../../adapters/database/tables.ts';
import type { Clock } from '../../kernel/clock.ts';
import { lazily } from '../../kernel/lazy.ts';
import { retryWhileUnavailable } from '../../kernel/retry-while-unavailable.ts';
import type { Context } from '../context/context.ts';
import { newResults, type Results, readSteps } from './record-pages.ts';
import { isHeld, recordPlaces } from './record-queries.ts';
import { type Records, readRecords } from './records.ts';
import { findLastStep, insertSteps } from './step-queries.ts';
import type { JournalJob } from './step-rows.ts';

/** The delay between tries while the database is unavailable, and their number. */
const retryMs = 500;
const triesMax = 120;

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

/** A claim whose journal is open: what it has read of its job's record, and what it still has to write. */
export class OpenClaim {
  readonly database: Database;
  readonly clock: Clock;
  readonly job: JournalJob;
  /** The number of the job's next step. */
  readonly numbers: () => Promise<{ next: number }>;
  /** What earlier claims have recorded, and this one since. */
  readonly records: () => Promise<ClaimRecords>;
  /**
   * The places of the ends that the run has got and whose rows do not have them yet, by number. The next write
   * records them, before the run can go on to something that is on record.
   */
  readonly places = new Map<number, number>();
  /** Steps that have failed and are not on record yet; the next write records them, too. */
  readonly failures: Insertable<JobStepsTable>[] = [];
  /** The numbers of those that may be on record already, without a confirmation. */
  readonly #unconfirmed = new Set<number>();
  /** Whether a wait has begun, so that the run may be unloaded without another write. */
  hasWaits = false;

  constructor({ database, clock }: Context, job: JournalJob) {
    const { read } = database;
    this.database = database;
    this.clock = clock;
    this.job = job;
    this.numbers = lazily(async () => ({
      next: 1 + (job.epoch === 1 ? 0 : ((await findLastStep(read, { job_id: job.id }))?.n ?? 0)),
    }));
    this.records = lazily(async () => {
      const rows = job.epoch === 1 ? [] : await readSteps(read, job.id);
      return { ...readRecords(rows, job.attempt), results: newResults(read, job.id, rows) };
    });
  }

  /** Whether the claim still holds its job. If it does, it does until the transaction ends. */
  isHeld(tx: Transaction): Promise<boolean> {
    return isHeld(tx, this.job);
  }

  /**
   * Runs a unit while the claim holds its job. A connection may break after the commit and before its
   * confirmation, so a repeated unit checks for its own rows.
   */
  async write<T>(unit: (tx: Transaction, isRepeat: boolean) => Promise<T>): Promise<T> {
    const { job, places, failures } = this;
    const unconfirmed = this.#unconfirmed;
    const ends = [...places].map(([n, place]) => ({ job_id: job.id, n, told: place }));
    const failed = failures.splice(0);
    const mayBeKnown = failed.some(({ n }) => unconfirmed.has(n));
    try {
      const result = await patiently((tries) =>
        this.database.write(async (tx) => {
          if (!(await this.isHeld(tx))) return null;
          if (ends.length > 0) await recordPlaces(tx, ends);
          if (failed.length > 0) await insertNew(tx, job, failed, tries > 1 || mayBeKnown);
          return { value: await unit(tx, tries > 1) };
        }),
      );
      if (result === null) throw new LeaseLostError();
      for (const { n } of ends) places.delete(n);
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
  async writeRest(): Promise<void> {
    if (this.places.size === 0 && this.failures.length === 0) return;
    try {
      await this.write(async () => {});
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
    }
  }
}

/** Does work of a journal, and again for a minute while the database is unavailable. */
export function patiently<T>(work: (tries: number) => Promise<T>): Promise<T> {
  return retryWhileUnavailable(work, retryMs, (tries) => tries < triesMax);
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
