/**
 * The events of runs, each with its job. Metrics, statistics, the heartbeat of the process and the streams of jobs
 * observe them; traces or an audit would be further observers. `accepted`, `claimed`, `modelCalled`, `toolEnded`, `delivered`, `ended` and
 * `lost` come after the commit that makes them true; the others come while the run goes on. Each `begun` is followed by one
 * `left` in the same process, whatever becomes of the run. An observer must not throw.
 */
import type { Selectable } from 'kysely';
import type { JobsTable, StepKind, WaitKind } from '../../adapters/database/tables.ts';
import type { RunErrorCode } from '../../kernel/errors.ts';

type JobRow = Selectable<JobsTable>;

/** The job of an event. */
export type ObservedJob = Pick<
  JobRow,
  'id' | 'organization_id' | 'agent_id' | 'skill_category' | 'skill_name' | 'skill_version'
>;

/** A job as it was recorded. */
export type ObservedNewJob = ObservedJob &
  Pick<JobRow, 'api_key_id' | 'trigger_type' | 'created_at'>;

/** A job in a claim. */
export type ObservedClaim = ObservedJob &
  Pick<JobRow, 'trigger_type' | 'epoch' | 'attempt' | 'started_at' | 'resumed_at'>;

/** Why a job failed or was cancelled, as the API shows it. */
export interface JobError {
  readonly code: RunErrorCode;
  readonly message: string;
}

/** What the end of an attempt makes of the job. */
export type Transition =
  | { readonly status: 'completed'; readonly output: string }
  | { readonly status: 'failed' | 'cancelled'; readonly error: JobError }
  | {
      readonly status: 'queued';
      readonly runAt: number;
      readonly error: JobError | null;
      /** Attempts that are not charged. */
      readonly refund: 0 | 1;
      readonly unattributedDeaths: 0 | 1;
    }
  /** The attempt goes on when one of its waits has ended: `dueAt` at the latest. */
  | { readonly status: 'waiting'; readonly dueAt: number };

/** The end of a claim, or of a job that was cancelled while no process had claimed it. */
export interface ObservedEnd {
  readonly job: ObservedClaim;
  readonly from: 'active' | 'queued' | 'waiting';
  readonly transition: Transition;
  /** Milliseconds of the attempt in which it was active; 0 for a job that was cancelled before it ended. */
  readonly durationMs: number;
}

/** The tokens of a call of a model; null or absent where the provider did not report them. */
export interface ObservedTokens {
  readonly prompt: number | null;
  readonly completion: number | null;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly reasoning?: number;
}

/** A step that the code of a run has begun: a skill that it calls, or a named function of its own. */
export interface ObservedStep {
  /** The number of the step in its job. */
  readonly n: number;
  readonly kind: Extract<StepKind, 'skill' | 'step'>;
  readonly name: string;
}

/** A call of a model, as its step in the job. */
export interface ObservedCall {
  readonly n: number;
  readonly startedAt: number;
  readonly tokens: ObservedTokens;
  /** Nano-dollars; null where unknown. */
  readonly cost: number | null;
}

/** A tool that a model has called, as its step in the job. */
export interface ObservedTool {
  readonly n: number;
  /** When its call, or its repetition in this claim, was recorded. */
  readonly startedAt: number;
  /** May be a name that the model has made up, up to 200 characters of it. */
  readonly name: string;
  /** The code of its error; null for a tool that completed. */
  readonly error: string | null;
}

/**
 * How a run left its process: its outcome is on record; its lease had ended before; the database has not confirmed which of
 * the two; or its outcome could not be recorded, because the platform stops or a fault came between.
 */
export type RunLeft = 'settled' | 'lease lost' | 'unconfirmed' | 'unrecorded';

/** What observes runs. It leaves out the events that do not concern it. */
export interface RunObserver {
  accepted?(jobs: readonly ObservedNewJob[]): void;
  /** This process has claimed a job from a queue. */
  claimed?(job: ObservedClaim): void;
  /** The run of a claimed job begins in this process. */
  begun?(job: ObservedClaim): void;
  /** The run of a claimed job is over in this process. */
  left?(job: ObservedClaim, how: RunLeft): void;
  stepBegun?(job: ObservedJob, step: ObservedStep): void;
  modelCalled?(job: ObservedJob, call: ObservedCall): void;
  toolEnded?(job: ObservedJob, tool: ObservedTool): void;
  waitBegun?(job: ObservedJob, wait: { readonly n: number; readonly kind: WaitKind }): void;
  /** The run of the job `to` has taken the message of a job, which is waiting for its end. */
  delivered?(job: ObservedClaim, to: string): void;
  ended?(end: ObservedEnd, now: number): void;
  /** The attempts of these claims were lost with their processes; `ended` says what becomes of each job. */
  lost?(jobs: readonly ObservedClaim[]): void;
}

/** The observers of this process. */
export class RunObservers implements RunObserver {
  readonly #observers: RunObserver[] = [];

  add(...observers: readonly RunObserver[]): void {
    this.#observers.push(...observers);
  }

  accepted(jobs: readonly ObservedNewJob[]): void {
    for (const observer of this.#observers) observer.accepted?.(jobs);
  }

  claimed(job: ObservedClaim): void {
    for (const observer of this.#observers) observer.claimed?.(job);
  }

  begun(job: ObservedClaim): void {
    for (const observer of this.#observers) observer.begun?.(job);
  }

  left(job: ObservedClaim, how: RunLeft): void {
    for (const observer of this.#observers) observer.left?.(job, how);
  }

  stepBegun(job: ObservedJob, step: ObservedStep): void {
    for (const observer of this.#observers) observer.stepBegun?.(job, step);
  }

  modelCalled(job: ObservedJob, call: ObservedCall): void {
    for (const observer of this.#observers) observer.modelCalled?.(job, call);
  }

  toolEnded(job: ObservedJob, tool: ObservedTool): void {
    for (const observer of this.#observers) observer.toolEnded?.(job, tool);
  }

  waitBegun(job: ObservedJob, wait: { readonly n: number; readonly kind: WaitKind }): void {
    for (const observer of this.#observers) observer.waitBegun?.(job, wait);
  }

  delivered(job: ObservedClaim, to: string): void {
    for (const observer of this.#observers) observer.delivered?.(job, to);
  }

  ended(end: ObservedEnd, now: number): void {
    for (const observer of this.#observers) observer.ended?.(end, now);
  }

  lost(jobs: readonly ObservedClaim[]): void {
    for (const observer of this.#observers) observer.lost?.(jobs);
  }
}
