/**
 * Decides which run caused the death of an executor, from the facts of the death and of the active runs.
 * A pure function. Charges a run only when no other run can be the cause. Every other run is displaced,
 * and its outcome says whether it is still a suspect.
 */
import type { RunOutcome } from './run.ts';

/** Why an executor ended. All but `retired` and `stopped` are faults. */
export type Death =
  /** It ended without the pool's doing; `how` is `exit code 1`, `SIGSEGV`, `out of memory`. */
  | { readonly kind: 'ended'; readonly how: string }
  /** Killed: its event loop did not answer. */
  | { readonly kind: 'stalled'; readonly ms: number }
  /** Killed: it held more memory than it may. */
  | { readonly kind: 'memory'; readonly mb: number }
  /** Killed: it sent a message that no executor sends. */
  | { readonly kind: 'garbled'; readonly how: string }
  /** Killed: a run did not stop in its grace period, and is itself the cause. */
  | { readonly kind: 'overdue' }
  /** Killed: it was not ready in time, or did not load. */
  | { readonly kind: 'unready' }
  /** Killed while idle: no longer needed. */
  | { readonly kind: 'retired' }
  /** Killed: the pool is stopping. */
  | { readonly kind: 'stopped' };

/** The facts of an active run at the death of its executor. */
export interface RunFacts {
  /** Its code may have begun. */
  readonly hasStarted: boolean;
  /** The child's process title named it as the run being started. */
  readonly isBeginning: boolean;
  /** Why it was asked to stop: its deadline, an abort, or null when it was not asked. */
  readonly stopRequest: 'timeout' | 'abort' | null;
  /** The child has read that request. */
  readonly hasReceived: boolean;
  /** Its grace period is over, and this run is the reason for the kill. */
  readonly isOverdue: boolean;
  /** It ran alone, as its request asked. */
  readonly isAlone: boolean;
  /** Another run of the executor has ended since shortly before it: code that it left behind may still execute. */
  readonly hasOutlived: boolean;
  readonly timeoutMessage: string;
}

/** True when the death is a fault, which is counted and logged. */
export function isFault(death: Death): boolean {
  return death.kind !== 'retired' && death.kind !== 'stopped';
}

/** The outcome of each run, in the order of `runs`. */
export function attributeDeath(death: Death, runs: readonly RunFacts[]): RunOutcome[] {
  if (!isFault(death)) return runs.map(() => ({ kind: 'aborted' }));
  if (death.kind === 'overdue') return runs.map(attributeOverdue);
  const suspects = suspectsOf(death, runs);
  const [first, second] = suspects;
  const isOnly =
    second === undefined && (first?.isBeginning === true || first?.hasOutlived === false);
  const cause = isOnly ? first : undefined;
  return runs.map((facts) => {
    if (facts.stopRequest === 'abort') return { kind: 'aborted' };
    if (facts !== cause) return { kind: 'displaced', suspect: suspects.includes(facts) };
    if (facts.stopRequest === 'timeout') return { kind: 'timeout', message: facts.timeoutMessage };
    const message = describeDeath(death);
    if (!isOwnExit(death)) return { kind: 'lost', message };
    return { kind: 'failed', code: 'skill_execution_failed', message, retryable: true };
  });
}

/** An exit code, not a signal: only code in the process itself can set one. */
function isOwnExit(death: Death): boolean {
  return death.kind === 'ended' && /^exit code \d+$/.test(death.how);
}

function suspectsOf(death: Death, runs: readonly RunFacts[]): RunFacts[] {
  if (death.kind === 'stalled') {
    const beginning = runs.filter((facts) => facts.isBeginning);
    if (beginning.length > 0) return beginning;
  }
  return runs.filter((facts) => facts.hasStarted || facts.isAlone);
}

function attributeOverdue(facts: RunFacts): RunOutcome {
  if (facts.stopRequest === 'abort') return { kind: 'aborted' };
  if (facts.isOverdue || (facts.stopRequest === 'timeout' && facts.hasReceived)) {
    return { kind: 'timeout', message: facts.timeoutMessage };
  }
  return { kind: 'displaced', suspect: false };
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
    case 'overdue':
      return 'a run passed its deadline and did not stop';
    case 'unready':
      return 'the executor did not become ready';
    case 'retired':
      return 'the executor was no longer needed';
    case 'stopped':
      return 'the pool was stopped';
  }
}
