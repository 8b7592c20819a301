/**
 * The places of skills that a run calls: by its code as a step, or by its model as a tool. A call waits until its gates have
 * places, and meanwhile the run yields its slot. It fails with the code `no_place` after half of the time that its run has left, or
 * once the sweep finds that runs wait for each other. What is called within a call that has a
 * place, or within a job that has one, needs no second one at the same gate.
 */
import { aborted } from '../../../kernel/aborted.ts';
import { dayMs } from '../../../kernel/clock.ts';
import { isObject } from '../../../kernel/json.ts';
import { withDeadline } from '../../../kernel/with-deadline.ts';
import { LeaseLostError, patiently } from '../../journal/claim-writes.ts';
import type { RunPart } from '../../journal/run-part.ts';
import { skillKeyParts } from '../../skills/registry.ts';
import { type Attempt, yieldSlot } from '../runs/attempt.ts';
import { type Gate, isOfStarts, waitingFor } from './gates.ts';
import { isRate } from './rates.ts';

/** A call fails that got no place; a later attempt may get one. */
export class NoPlaceError extends Error {
  readonly code = 'no_place';
  readonly retryable = true;
}

/** A call that has places. */
interface PlacedCall {
  readonly skill: string;
  readonly path: string;
  readonly gates: readonly string[];
}

export class CalledPlaces {
  readonly #attempt: Attempt;
  /** By the number of the step. */
  readonly #placed = new Map<number, PlacedCall>();
  /** What answers the calls that wait, by the number of the step. */
  readonly #waiting = new Map<number, (isGiven: boolean) => void>();

  constructor(attempt: Attempt) {
    this.#attempt = attempt;
  }

  /**
   * Waits until the call of a skill, which is `part` of the run, has its places. Rejects once the signal aborts. `goesOn`: it
   * had started before the run waited.
   */
  async take(
    skill: string,
    { path, step }: RunPart,
    signal: AbortSignal,
    goesOn = false,
  ): Promise<void> {
    const gates = this.#gatesOf(skill, path).filter(({ name }) => !goesOn || !isOfStarts(name));
    if (gates.length === 0 || step === null) return;
    this.#placed.set(step, { skill, path, gates: gates.map(({ name }) => name) });
    try {
      await this.#take({ n: step, within: this.#around(path), gates }, signal);
      await this.#begin(step, gates);
    } catch (error) {
      await this.give(step);
      throw error;
    }
  }

  async #take(
    call: {
      readonly n: number;
      readonly within: readonly number[];
      readonly gates: readonly Gate[];
    },
    signal: AbortSignal,
  ): Promise<void> {
    const { n: step, gates } = call;
    const { job, runs } = this.#attempt;
    signal.throwIfAborted();
    const taken = await patiently(() => runs.places.takeForCall({ claim: job, ...call }));
    if (taken === null) throw new LeaseLostError();
    if (taken) return;
    const answered = Promise.withResolvers<boolean>();
    this.#waiting.set(step, answered.resolve);
    const resume = yieldSlot(this.#attempt);
    try {
      // It may have got them before it was known to wait.
      void this.answer();
      const isGiven = Promise.race([answered.promise, aborted(signal)]);
      if ((await withDeadline(isGiven, this.#patienceMs())) !== true) throw noPlaceAt(gates);
    } finally {
      resume();
      this.#waiting.delete(step);
    }
  }

  /** Counts the start of a call at its rates. */
  async #begin(step: number, gates: readonly Gate[]): Promise<void> {
    const { job, runs } = this.#attempt;
    const rates = gates.map(({ name }) => name).filter(isRate);
    if (rates.length === 0) return;
    const { starts } = runs.places.uses;
    if (!(await patiently(() => starts.countStart(job, step, rates)))) throw new LeaseLostError();
  }

  /** The call has failed; where a service has refused it for some time, its skill may have to pause. */
  async failed(step: number, error: unknown): Promise<void> {
    const { skill } = this.#placed.get(step) ?? {};
    const ms = isObject(error) ? error['retryAfterMs'] : undefined;
    if (skill !== undefined && typeof ms === 'number' && ms > 0)
      await noteRefusal(this.#attempt, skill, ms);
  }

  /** Half of the time that the run has left, and less by chance: of runs that wait for each other only one is to fail. */
  #patienceMs(): number {
    const { endsAt, runs } = this.#attempt;
    const leftMs = Math.max(0, endsAt - runs.context.clock.monotonic());
    return (Math.min(leftMs, dayMs) / 2) * (1 - Math.random() / 4);
  }

  /** The call has ended: gives its places back. */
  async give(step: number | null): Promise<void> {
    if (step === null || !this.#placed.delete(step)) return;
    const { job, runs } = this.#attempt;
    try {
      await patiently(() => runs.places.releaseCall(job, step));
    } catch (err) {
      // They go with the claim of the job.
      runs.context.log.warn(
        { err, job_id: job.id },
        'places of a call are kept until its run ends',
      );
    }
  }

  /** Answers those of the calls that wait which have got their places, or have failed. */
  async answer(): Promise<void> {
    if (this.#waiting.size === 0) return;
    const { job, runs } = this.#attempt;
    try {
      const waiting = [...this.#waiting];
      const calls = await patiently(() => runs.places.callsOf(job.id));
      for (const [step, answer] of waiting) if (calls.get(step) !== false) answer(calls.has(step));
    } catch (err) {
      runs.context.log.warn({ err, job_id: job.id }, 'places of calls are not read');
    }
  }

  /** The steps of the calls with places around a part of the run. */
  #around(path: string): number[] {
    return [...this.#placed].flatMap(([step, outer]) =>
      path.startsWith(`${outer.path}/`) ? [step] : [],
    );
  }

  /** Gates of the called skill, except where the job or an enclosing call already has a place. */
  #gatesOf(skill: string, path: string): readonly Gate[] {
    const { job, runs } = this.#attempt;
    const [skill_category, skill_version, skill_name] = skillKeyParts(skill);
    const called = { ...job, skill_category, skill_version, skill_name };
    const gates = runs.places.limits.gatesOf(called);
    if (gates.length === 0) return gates;
    const covered = new Set(runs.places.limits.gatesOf(job).map(({ name }) => name));
    for (const step of this.#around(path))
      for (const name of this.#placed.get(step)?.gates ?? []) covered.add(name);
    // Each call is a start.
    return gates.filter(({ name }) => isOfStarts(name) || !covered.has(name));
  }
}

function noPlaceAt(gates: readonly Gate[]): NoPlaceError {
  const names = gates.map(({ name }) => waitingFor(name)).join(', ');
  return new NoPlaceError(`There was no place in time: ${names}`);
}

/** Notes that a service has refused a skill that the run has called. */
export async function noteRefusal(
  { runs, job }: Attempt,
  skill: string,
  ms: number,
): Promise<void> {
  try {
    await patiently(() => runs.places.calledRefused(skill, ms));
  } catch (err) {
    runs.context.log.warn({ err, job_id: job.id, skill }, 'a refused skill is not paused');
  }
}

export function calledPlacesOf(attempt: Attempt): CalledPlaces {
  attempt.places ??= new CalledPlaces(attempt);
  return attempt.places;
}
