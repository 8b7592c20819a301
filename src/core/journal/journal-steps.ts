/**
 * The forms of the steps that the code of a run takes itself, named ones and skills that it calls, and how their rows are
 * read. A step is known by its key, so a repeated run finds its result. journal.ts writes them.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import type { StepKind } from '../../adapters/database/tables.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import type { MemoryChange } from '../memories/run-memory.ts';
import type { OpenClaim } from './claim-writes.ts';
import { resultOf } from './record-pages.ts';
import { numberAfter, type RecordedEnd, type StepPlace, type StepRecord } from './records.ts';
import { listStepsOfGeneration, type StepOfGeneration } from './step-queries.ts';
import type { StepError } from './step-rows.ts';

/** Its name is the one that the code gave, or the `category/version/name` of a skill. */
export interface StepRequest extends StepPlace {
  readonly kind: Extract<StepKind, 'skill' | 'step'>;
}

/** Why a step or a wait failed; `retryable` is absent where its error does not say. */
export type StepFailure = StepError & { readonly retryable?: boolean };

/** The result of a completed step. */
export interface StepResult {
  /** JSON text. */
  readonly result: string;
  readonly memory: readonly MemoryChange[];
}

export type StepEnd =
  | StepResult
  /** `wasStopped` if the run was being stopped: then the stop may be what made it fail. */
  | { readonly error: StepFailure; readonly wasStopped?: boolean };

export interface BegunStep {
  readonly n: number;
  /** How it ended before; undefined when the step has to run now. */
  readonly recorded: (StepEnd & RecordedEnd) | undefined;
  /** Ends on record with places before this one come before its end. */
  readonly after: number;
}

/** An open step that ends; `place` is that of its end in the order in which the run gets ends. */
export interface EndingStep extends Pick<StepRequest, 'key' | 'kind'> {
  readonly n: number;
  readonly place: number;
}

/** The number of a step that is not on record yet. */
export async function nextStep(claim: OpenClaim): Promise<number> {
  return numberAfter(await claim.numbers());
}

/** How a step or a wait ended, from its row. */
export async function endOnRecord(
  claim: OpenClaim,
  step: Pick<StepRecord, 'n' | 'parent'>,
): Promise<StepEnd & RecordedEnd> {
  const { n } = step;
  const row = await resultOf((await claim.records()).results, step);
  const end = { n, at: row?.finished_at ?? claim.job.created_at, place: row?.told ?? null };
  if (row?.status === 'completed' && row.result !== null) {
    const memory = row.memory === null ? [] : (JSON.parse(row.memory) as MemoryChange[]);
    return { result: row.result, memory, ...end };
  }
  if (row?.status !== 'failed' || row.error === null)
    throw permanentError('the step has not ended');
  return { error: JSON.parse(row.error) as StepFailure, ...end };
}

/**
 * The step under a key, where an earlier try of the same write was committed and its confirmation was lost. It may have
 * ended since.
 */
export async function findInserted(
  { job }: OpenClaim,
  key: string,
  tx: Transaction,
): Promise<StepOfGeneration | undefined> {
  const [step] = await listStepsOfGeneration(tx, { job_id: job.id, generation: key });
  return step;
}
