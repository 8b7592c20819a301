/**
 * Decides which run caused the death of an executor, from the facts of the death and of the active runs.
 * A pure function. Charges a run only when no other run can be the cause. Every other run is displaced,
 * and its outcome says whether it is still a suspect.
 */
import { type ActiveRun, timeoutMessage } from './active-run.ts';
import type { BegunRun } from './now-running.ts';
import type { RunOutcome, RunRequest } from './run.ts';

/** Why an executor ended. All but `retired` and `stopped` are faults. */
export type Death =
  /** It ended without the pool's doing; `how` is `exit code 1`, `SIGSEGV`, `out of memory`. */
  | { readonly kind: 'ended'; readonly how: string }
  /** Killed: its event loop did not answer. `begun` is the last run that it has begun, where that is known. */
  | { readonly kind: 'stalled'; readonly ms: number; readonly begun: BegunRun | undefined }
  /** Killed: it held more memory than it may. */
  | { readonly kind: 'memory'; readonly mb: number; readonly begun: BegunRun | undefined }
  /** Killed: it sent a message that no executor sends. */
  | { readonly kind: 'garbled'; readonly how: string; readonly begun: BegunRun | undefined }
  /** Killed: a run did not stop in its grace period, and is itself the cause. */
  | { readonly kind: 'overdue' }
  /** Killed: it was not ready in time, or did not load. */
  | { readonly kind: 'unready' }
  /** Killed while idle: no longer needed. */
  | { readonly kind: 'retired' }
  /** Killed: the pool is stopping. */
  | { readonly kind: 'stopped' };

/** A run at the death of its executor. */
export interface Suspect {
  readonly run: ActiveRun;
  /** Its code may have begun. */
  readonly mayHaveBegun: boolean;
  /** Its code has begun, by what the child has answered; a process title that says otherwise is a skill's. */
  readonly hasBegun: boolean;
  /** Another run of the executor has ended since shortly before it: code that it left behind may still execute. */
  readonly hasOutlived: boolean;
}

/** True when the death is a fault, which is counted and logged. */
export function isFault(death: Death): boolean {
  return death.kind !== 'retired' && death.kind !== 'stopped';
}

/** The outcome of each run, in the order of `runs`. */
export function attributeDeath(death: Death, runs: readonly Suspect[]): RunOutcome[] {
  if (!isFault(death)) return runs.map(() => ({ kind: 'aborted' }));
  if (death.kind === 'overdue') return runs.map(attributeOverdue);
  const suspects = suspectsOf(death, runs);
  const cause = causeOf(death, suspects);
  return runs.map((one) => {
    const { stopRequest, accepted } = one.run;
    if (stopRequest?.cause === 'abort') return { kind: 'aborted' };
    if (one !== cause) return { kind: 'displaced', suspect: suspects.includes(one) };
    if (stopRequest !== undefined) return timeoutOf(accepted.request);
    const message = describeDeath(death);
    if (!isOwnExit(death)) return { kind: 'lost', message };
    return { kind: 'failed', code: 'skill_execution_failed', message, retryable: true };
  });
}

/** The only suspect, if no other code can be the cause. */
function causeOf(death: Death, [first, second]: readonly Suspect[]): Suspect | undefined {
  if (first === undefined || second !== undefined) return undefined;
  return isBeginning(death, first) || !first.hasOutlived ? first : undefined;
}

function isBeginning(death: Death, { run }: Suspect): boolean {
  return death.kind === 'stalled' && death.begun?.isBeginning === true && death.begun.id === run.id;
}

/** An exit code, not a signal: only code in the process itself can set one. */
function isOwnExit(death: Death): boolean {
  return death.kind === 'ended' && /^exit code \d+$/.test(death.how);
}

function suspectsOf(death: Death, runs: readonly Suspect[]): readonly Suspect[] {
  const beginning = runs.find((one) => isBeginning(death, one));
  if (beginning !== undefined) return [beginning];
  return runs.filter((one) => one.mayHaveBegun && !isUnbegun(death, one));
}

/** Whether its code has certainly not begun: the child may have had no processor. */
function isUnbegun(death: Death, { run, hasBegun }: Suspect): boolean {
  if (hasBegun || !('begun' in death) || death.begun === undefined) return false;
  return run.id > death.begun.id;
}

function attributeOverdue({ run: { stopRequest, accepted } }: Suspect): RunOutcome {
  if (stopRequest?.cause === 'abort') return { kind: 'aborted' };
  if (stopRequest?.receivedAt !== undefined || stopRequest?.isOverdue) {
    return timeoutOf(accepted.request);
  }
  return { kind: 'displaced', suspect: false };
}

function timeoutOf(request: RunRequest): RunOutcome {
  return { kind: 'timeout', message: timeoutMessage(request) };
}

/** The error message for the owner of the run that caused the death. */
function describeDeath(death: Death): string {
  switch (death.kind) {
    case 'ended':
      return `the run ended its executor process: ${death.how}`;
    case 'stalled':
      return `the run blocked its executor's event loop for ${death.ms} ms`;
    case 'memory':
      return `the run made its executor hold more than ${death.mb} MB of memory`;
    case 'garbled':
      return `the run wrote to its executor's own socket: ${death.how}`;
    default:
      // Of the others no run is the cause.
      return death.kind;
  }
}
