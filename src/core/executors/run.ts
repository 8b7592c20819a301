/**
 * The types of the pool's interface: a run, its reports while it executes, and its one outcome. They use
 * the terms of the jobs slice and know nothing of processes.
 */
import type { LogFields } from '../skills/definition.ts';
import type { RunSettings } from '../skills/settings.ts';
import type { FailureCode, MessageRole } from './protocol.ts';

/** One attempt at a job. */
export interface RunRequest {
  /** `category/version/name`. */
  readonly skill: string;
  /** JSON text that parses and that the skill's schema allows: it is sent on as it is. */
  readonly input: string;
  readonly context: {
    readonly jobId: string;
    readonly agentId: string;
    readonly conversationId: string;
    readonly organizationId: string;
    readonly attempt: number;
    /** What `ctx.now()` is at first, in milliseconds: when the job was accepted. */
    readonly now: number;
    /** Where in its job it runs: absent for the job's own run, the path of the part for a tool's. */
    readonly path?: string;
    /** The job whose record it repeats first, where it is another one. */
    readonly recordOf?: string | undefined;
  };
  /** Milliseconds from the moment at which an executor starts it. */
  readonly timeoutMs: number;
  /** Run with no neighbour, in a fresh executor. */
  readonly alone?: boolean;
  /** Of a skill that declares settings. */
  readonly settings?: RunSettings;
}

/** A report of an executing run. Texts are well-formed, without NUL and within their limits. */
export type RunReport =
  | { type: 'log'; message: string; fields?: LogFields; at: number }
  | { type: 'progress'; fraction: number; note?: string }
  /** `step` is the step of the run in which it was said, absent for the run itself. */
  | { type: 'message'; role: MessageRole; content: string; step?: number };

export interface RunHandlers {
  /**
   * Called once an executor is ready for the run, before it gets it; without it the run begins at once. False ends the
   * run as aborted. Whatever executes a run must call it: an attempt whose beginning is not recorded may be repeated.
   * Never rejects.
   */
  confirmStart?(): Promise<boolean>;
  onReport(report: RunReport): void;
  /**
   * Answers a question of the run; the answer is a JSON value. A rejection reaches the skill as an
   * error with the same message, `code` and `retryable`. The signal aborts when the run is asked to
   * stop and when it has ended: then the answer is not read. `step` is the step of the run in which
   * it is asked, null for the run itself.
   *
   * `begin-step` asks to take a step, such as a skill that the run calls: `{kind, name, digest, nth}`.
   * The answer is `{step}`, its number, when it is to be taken, or `{output}`, what it gave in an
   * earlier attempt. `end-step` tells how it ended, `{step, output}` or `{step, error}`, and is
   * answered when that is recorded.
   */
  onAsk(kind: string, payload: unknown, signal: AbortSignal, step: number | null): Promise<unknown>;
}

export type RunOutcome =
  /** `output` is JSON text, written by the parent from the parsed value; its strings are clean. */
  | { kind: 'completed'; output: string }
  /** `stack` is for the operator's log only; absent where none says more than the message. */
  | {
      kind: 'failed';
      code: FailureCode;
      message: string;
      retryable: boolean;
      /** Milliseconds for which a service that was asked wants no further request. */
      retryAfterMs?: number;
      stack?: string;
    }
  /** It passed its deadline, and ended within the grace period or was killed. */
  | { kind: 'timeout'; message: string }
  /** It ended without a result because `abort()` was called, or the pool stopped. */
  | { kind: 'aborted' }
  /** It was suspended: its code is dropped, and none of its promises settles. */
  | { kind: 'waiting' }
  /** Its executor died, and this run alone can have been the cause. */
  | { kind: 'lost'; message: string }
  /** Its executor died. `suspect` is false when this run is known not to have been the cause. */
  | { kind: 'displaced'; suspect: boolean };

export interface RunHandle {
  /** Never rejects. */
  readonly outcome: Promise<RunOutcome>;
  /** Asks the run to stop, and kills it after the grace period. Does nothing once it has ended. */
  abort(reason: string): void;
  /**
   * Asks the run to end as `waiting`. The child refuses silently if the run has asked something that the
   * parent has not seen, has ended, or was asked to stop. To be called whenever all open questions of the
   * run have come to wait. Does nothing while no executor has the run.
   */
  suspend(): void;
}
