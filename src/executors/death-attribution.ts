/**
 * Who is at fault when an executor dies: a pure decision from what is known of the death and of the
 * runs that were in flight. Charges a run only when no other can have been the cause; everybody else
 * is displaced, and told whether suspicion stays.
 */
import type { RunOutcome } from './run.ts';

/** Why an executor ended. All but `retired` and `stopped` are faults. */
export type Death =
  /** It ended by itself; `how` says what is known: `exit code 1`, `SIGSEGV`, `out of memory`. */
  | { readonly kind: 'ended'; readonly how: string }
  /** Killed: its event loop did not answer. */
  | { readonly kind: 'stalled'; readonly ms: number }
  /** Killed: it held more memory than it may. */
  | { readonly kind: 'memory'; readonly mb: number }
  /** Killed: it said what no executor says. */
  | { readonly kind: 'garbled'; readonly how: string }
  /** Killed: a run passed its deadline and the grace, and its loop answered or it was alone. */
  | { readonly kind: 'overdue' }
  /** Killed: it was not ready in time, or did not load. */
  | { readonly kind: 'unready' }
  /** Killed while idle: no longer needed. */
  | { readonly kind: 'retired' }
  /** Killed: the pool is stopping. */
  | { readonly kind: 'stopped' };

/** What is known of a run in flight. */
export interface RunFacts {
  /** Its code may have begun. */
  readonly hasStarted: boolean;
  /** The child was beginning it when it was last seen. */
  readonly isBeginning: boolean;
  /** What it was told: that its time is up, that it was aborted, or nothing. */
  readonly stopRequest: 'timeout' | 'abort' | null;
  /** The child has taken that message. */
  readonly hasReceived: boolean;
  /** The grace after that message is over too, and this run is the reason for the death. */
  readonly isOverdue: boolean;
  /** It had asked to be without neighbours, and was. */
  readonly isAlone: boolean;
  readonly timeoutMessage: string;
}

/** True when the death is to be counted and logged as one. */
export function isFault(death: Death): boolean {
  return death.kind !== 'retired' && death.kind !== 'stopped';
}

/** The outcome of each run, in the order given. */
export function attributeDeath(death: Death, runs: readonly RunFacts[]): RunOutcome[] {
  if (!isFault(death)) return runs.map(() => ({ kind: 'aborted' }));
  if (death.kind === 'overdue') return runs.map(attributeOverdue);
  const suspects = suspectsOf(death, runs);
  const cause = suspects.length === 1 ? suspects[0] : undefined;
  return runs.map((facts) => {
    if (facts.stopRequest === 'abort') return { kind: 'aborted' };
    if (facts !== cause) return { kind: 'displaced', suspect: suspects.includes(facts) };
    if (facts.stopRequest === 'timeout') return { kind: 'timeout', message: facts.timeoutMessage };
    const message = describeDeath(death);
    if (!isOwnExit(death)) return { kind: 'lost', message };
    return { kind: 'failed', code: 'skill_execution_failed', message, retryable: true };
  });
}

/** An exit code, and not a signal: only code of the process itself ends it so. */
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

/** A death as a sentence for the owner of the run that caused it. */
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
