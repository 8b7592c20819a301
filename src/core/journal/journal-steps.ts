/**
 * Steps that the code of a run takes itself: named ones, and skills that it calls. A step is on record
 * before it begins, and its result is on record before the run goes on. Each write is accepted only from
 * the claim that holds the job. A step is known by its key, so a repeated run finds its result.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import type { StepKind } from '../../adapters/database/tables.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import type { MemoryChange } from '../memories/run-memory.ts';
import { type OpenClaim, write } from './claim-writes.ts';
import { resultOf } from './record-pages.ts';
import { endRecord } from './record-queries.ts';
import {
  type AskedStep,
  countBytes,
  findRecord,
  isFinalFailure,
  noteRunning,
  numberAfter,
  type RecordedEnd,
  type StepRecord,
} from './records.ts';
import {
  insertSteps,
  listStepsOfGeneration,
  restartStep,
  type StepOfGeneration,
} from './step-queries.ts';
import { activeStep, type StepError } from './step-rows.ts';

/** Its name is the one that the code gave, or the `category/version/name` of a skill. */
export interface WantedStep extends AskedStep {
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
  /** Ends on record with places before this one are told before its end. */
  readonly after: number;
}

/**
 * Begins a step, unless its end is on record. `admit` rejects where it may not run now; what is on record
 * is given all the same.
 */
export async function beginStep(
  claim: OpenClaim,
  wanted: WantedStep,
  admit: () => Promise<void>,
): Promise<BegunStep> {
  const { job, deps } = claim;
  const { key, kind, name, parent, digest, nth } = wanted;
  const records = await claim.records();
  const known = findRecord(records, kind, wanted);
  if (known !== undefined) {
    if (known.status === 'completed' || isFinalFailure(records, known, job.attempt)) {
      const recorded = await endOnRecord(claim, known);
      records.pending.delete(known.n);
      return { n: known.n, recorded, after: 0 };
    }
    await admit();
    await write(claim, (tx) => restartStep(tx, job, known.n, deps.clock.now()));
    records.byKey.set(key, { ...known, status: 'active' });
    noteRunning(records, known.n);
    // If it has failed before, the code asks for the ends that followed only after this one.
    return { n: known.n, recorded: undefined, after: known.told ?? Number.POSITIVE_INFINITY };
  }
  await admit();
  const n = await nextStep(claim);
  await write(claim, async (tx, isRepeat) => {
    if (isRepeat && (await findInserted(claim, key, tx)) !== undefined) return;
    const step = { n, kind, generation: key, parent, turn: nth, name, digest };
    await insertSteps(tx, [activeStep(job, { ...step, started_at: deps.clock.now() })]);
  });
  const none = { attempt: null, seen_to: null, told: null, due_at: null };
  records.byKey.set(key, { n, kind, name, nth, parent, status: 'active', digest, ...none });
  return { n, recorded: undefined, after: Number.POSITIVE_INFINITY };
}

/** An open step that ends; `told` is the place of its end in the order in which the run gets ends. */
export interface EndingStep extends Pick<WantedStep, 'key' | 'kind'> {
  readonly n: number;
  readonly told: number;
}

/** Ends a step; when. */
export async function endStep(
  claim: OpenClaim,
  { key, kind, n, told }: EndingStep,
  end: StepEnd,
): Promise<number> {
  const { job, deps } = claim;
  const records = await claim.records();
  const counter = await claim.numbers();
  const isCompleted = 'result' in end;
  if (isCompleted) countBytes(records, end.result);
  const status = isCompleted ? 'completed' : 'failed';
  const attempt = isCompleted || end.wasStopped !== true ? job.attempt : null;
  const seen_to = kind === 'step' && !isCompleted ? counter.next - 1 : null;
  const now = deps.clock.now();
  await write(claim, (tx) =>
    endRecord(tx, {
      job_id: job.id,
      n,
      status,
      result: isCompleted ? end.result : null,
      memory: isCompleted && end.memory.length > 0 ? JSON.stringify(end.memory) : null,
      error: isCompleted ? null : JSON.stringify(end.error),
      attempt,
      seen_to,
      told,
      now,
    }),
  );
  const known = records.byKey.get(key);
  if (known !== undefined) records.byKey.set(key, { ...known, status, attempt, seen_to });
  return now;
}

/** Notes the place of an end that was on record before the run gets it. */
export function noteTold({ told }: OpenClaim, n: number, place: number): void {
  told.set(n, place);
}

/** The number of a step that is not on record yet. */
export async function nextStep(claim: OpenClaim): Promise<number> {
  return numberAfter(await claim.numbers());
}

/** How a step or a wait ended, from its row. */
export async function endOnRecord(
  { job, records }: OpenClaim,
  step: Pick<StepRecord, 'n' | 'parent'>,
): Promise<StepEnd & RecordedEnd> {
  const { n } = step;
  const row = await resultOf((await records()).results, step);
  const end = { n, at: row?.finished_at ?? job.created_at, told: row?.told ?? null };
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
