/**
 * The kinds of waits, as the journal sees them: each reads the request of a run, records the object of the
 * wait together with the step, and removes it when the wait ends. The journal itself ends a wait by
 * compare-and-set, so of an event, a timeout and a cancellation exactly one wins.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import { codeWaitKinds, type WaitKind, waitKinds } from '../../adapters/database/tables.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { waitMaxMs } from '../../kernel/step-bounds.ts';
import type { JournalJob, StepError } from './step-rows.ts';

/** How a wait ended. `value` is a JSON value. */
export type WaitResult =
  | { readonly value: unknown }
  | { readonly error: StepError & { readonly retryable: boolean } };

/** A wait that a run asks for, as its kind has read it. */
interface ReadWait {
  /** What its digest is made of: on replay a wait of the same name must have the same. */
  readonly input: unknown;
  /** When it ends by itself, in milliseconds since the epoch. */
  readonly dueAt: number;
}

/** A wait that is being recorded as step `n` of the job. */
interface BegunWait extends ReadWait {
  readonly job: JournalJob;
  readonly n: number;
  readonly name: string;
}

/** A wait whose deadline has passed. */
interface DueWait {
  readonly job: JournalJob;
  readonly n: number;
  readonly name: string;
}

export interface WaitKindVerbs {
  /** Reads the payload, which is hostile input. Throws an error that no retry would fix. */
  read(payload: Readonly<Record<string, unknown>>, job: JournalJob, now: number): ReadWait;
  /** Runs in the transaction that records the wait. Returns a result if the wait has ended already. */
  begin(tx: Transaction, wait: BegunWait, now: number): Promise<WaitResult | null>;
  /** The deadline has passed. Removes or closes the rows of the wait; what the run gets. */
  expire(tx: Transaction, wait: DueWait, now: number): Promise<WaitResult>;
  /** The jobs have ended while they waited. Removes or closes the rows of their waits. */
  abandon(tx: Transaction, jobIds: readonly string[], now: number): Promise<void>;
}

export type WaitKinds = Map<WaitKind, WaitKindVerbs>;

export function isWaitKind(kind: unknown): kind is WaitKind {
  return (waitKinds as readonly unknown[]).includes(kind);
}

/** Whether the code of a run may request waits of this kind. */
export function isCodeWaitKind(kind: unknown): kind is WaitKind {
  return (codeWaitKinds as readonly unknown[]).includes(kind);
}

/** The deadline of a wait of `ms` milliseconds. */
export function deadlineAfter(ms: unknown, now: number): number {
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) {
    throw permanentError('a wait needs a time in milliseconds that is not negative');
  }
  if (ms > waitMaxMs) throw permanentError('a wait may take 365 days at most');
  return now + Math.ceil(ms);
}
