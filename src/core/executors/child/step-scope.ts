/**
 * The step whose function the executing code belongs to. Within it a run can neither wait nor take another
 * step, because a step that is on record is not executed again, and what is in it would not be asked for.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { permanentError } from '../../../kernel/permanent-error.ts';
import type { Part } from './part.ts';

/** One execution of a step's function. */
export interface StepScope extends Pick<Part, 'names'> {
  readonly part: Part;
  /** The number of the step in its job. */
  readonly step: number;
  readonly name: string;
  readonly idempotencyKey: string;
  /** How many ids `ctx.uuid()` has made in this execution. */
  uuids: number;
  /** Its function has ended; code that it has left behind may go on. */
  isOver: boolean;
}

const scopes = new AsyncLocalStorage<StepScope>();

/** Executes the function of a step. */
export function withinStep<T>(scope: StepScope, run: () => T): T {
  return scopes.run(scope, run);
}

/** The step of this part in which the executing code is. */
export function scopeOf(part: Part): StepScope | undefined {
  const scope = scopes.getStore();
  return scope === undefined || scope.isOver || scope.part !== part ? undefined : scope;
}

/**
 * What numbers the calls that the executing code makes: a step its own, because a recorded step makes none.
 */
export function counterOf(part: Part): Pick<Part, 'names'> {
  return scopeOf(part) ?? part;
}

/** The number of the step for which the code speaks and asks; null for the run itself. */
export function stepOf(part: Part): number | null {
  return scopeOf(part)?.step ?? part.step;
}

/** Whether the executing code is in the function of a step, of any part. */
export const isWithinStep = (): boolean => scopes.getStore() !== undefined;

/** Throws if the executing code is in the function of a step. */
export function refuseWithinStep(verb: string): void {
  const scope = scopes.getStore();
  if (scope === undefined) return;
  throw permanentError(
    `${verb} cannot be used inside a step; call it before or after the step ${JSON.stringify(scope.name)}`,
  );
}
