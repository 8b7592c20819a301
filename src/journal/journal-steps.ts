/**
 * Steps that the code of a run takes itself, such as calling a skill. A step is on record before it
 * begins, and its result is on record before the run goes on. Each write is accepted only from the
 * claim that holds the job. A step is known by its key, so a repeated attempt finds its result.
 */
import type { StepKind } from '../database/tables.ts';
import type { MemoryChange } from '../memories/run-memory.ts';
import { type OpenClaim, write } from './claim-writes.ts';
import { endSteps, insertSteps, listStepsOfGeneration, restartStep } from './step-queries.ts';
import { activeStep, endedStep, type StepError } from './step-rows.ts';

export interface WantedStep {
  /** The same in every attempt: a hash of the step's place in the run, its kind and its input. */
  readonly key: string;
  readonly kind: Exclude<StepKind, 'model' | 'tool'>;
  /** The name to show: the `category/version/name` of a skill. */
  readonly name: string;
  /** The enclosing step, null for the run itself. */
  readonly parent: number | null;
}

/** The result of a completed step. */
export interface StepResult {
  /** JSON text. */
  readonly result: string;
  readonly memory: readonly MemoryChange[];
}

export type StepEnd = StepResult | { readonly error: StepError };

export interface BegunStep {
  readonly n: number;
  /** The result from an earlier attempt; undefined when the step has to run now. */
  readonly recorded: StepResult | undefined;
}

/** Begins a step. A step that did not complete in an earlier attempt begins again. */
export async function beginStep(
  claim: OpenClaim,
  { key, kind, name, parent }: WantedStep,
): Promise<BegunStep> {
  const { job, deps } = claim;
  const counter = await claim.numbers();
  let next: number | undefined;
  return write(claim, async (tx) => {
    const now = deps.clock.now();
    const [known] = await listStepsOfGeneration(tx, { job_id: job.id, generation: key });
    if (known === undefined) {
      next ??= counter.next++;
      const step = { n: next, kind, generation: key, parent, turn: 1, name, started_at: now };
      await insertSteps(tx, [activeStep(job, step)]);
      return { n: next, recorded: undefined };
    }
    const { n, result, memory } = known;
    if (known.status === 'completed' && result !== null) {
      const changes = memory === null ? [] : (JSON.parse(memory) as MemoryChange[]);
      return { n, recorded: { result, memory: changes } };
    }
    await restartStep(tx, job, n, now);
    return { n, recorded: undefined };
  });
}

export async function endStep(claim: OpenClaim, n: number, end: StepEnd): Promise<void> {
  const isCompleted = 'result' in end;
  const outcome = isCompleted
    ? { status: 'completed' as const, error: null }
    : { status: 'failed' as const, error: end.error };
  const row = endedStep(claim.job, n, outcome, null, claim.deps.clock.now());
  const memory = isCompleted && end.memory.length > 0 ? JSON.stringify(end.memory) : null;
  const result = isCompleted ? end.result : null;
  await write(claim, (tx) => endSteps(tx, [{ ...row, memory, result }]));
}
