/**
 * Keeps the code of one run from ending the child that it shares with others. `process.exit`, `abort`
 * and signals to the own process fail the run that called them. Uncaught errors fail the run whose code
 * threw them, and are only reported when that run has ended. This guards against mistakes, not malice:
 * native code can still end the process, and the pool then replaces the child.
 */
import { syncBuiltinESMExports } from 'node:module';
import { Budget } from '../console-budget.ts';
import { straysPerSecond } from '../limits.ts';
import { redactedStray } from '../redaction.ts';
import type { ChildRuns } from './child-runs.ts';
import { cutError, describeFailure, plainFailure } from './failure.ts';

/** Reports an error that failed no run to the parent; `skill` threw it, or is null when unknown. */
export type ReportStray = (skill: string | null, text: string) => void;

/** Thrown where a skill tried to end the process, so that its code does not go on. */
class ExitRefused extends Error {
  override readonly name = 'ExitRefused';
  readonly retryable = false;
}

/** Ends the child for good, from anywhere. Taken before skills could replace it. */
export const endProcess: () => never = (() => {
  const kill = process.kill.bind(process);
  return () => {
    kill(process.pid, 'SIGKILL');
    // The signal arrives before the next instruction; the abort is for the type and for Windows.
    process.abort();
  };
})();

/** Installs the guards. To be called before skills are loaded. */
export function installGuards(runs: ChildRuns, reportStray: ReportStray): void {
  const strays = new Budget(straysPerSecond);
  refuseExits((what) => {
    const error = new ExitRefused(`a skill may not end its process: it called ${what}`);
    const run = runs.current();
    if (run !== undefined) runs.fail(run, plainFailure(error.message, true));
    throw error;
  });
  const onError = (thrown: unknown): void => {
    const run = runs.current();
    if (run !== undefined && runs.fail(run, describeFailure(thrown, run))) return;
    if (thrown instanceof ExitRefused && run !== undefined) return;
    if (!strays.spend()) return;
    const { message, stack } = describeFailure(thrown, run);
    reportStray(run?.skill ?? null, cutError(redactedStray(stack ?? message)));
  };
  process.on('uncaughtException', onError);
  process.on('unhandledRejection', onError);
  // A supervisor may signal the whole group; the parent decides when the child ends.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
}

function refuseExits(refuse: (what: string) => never): void {
  const kill = process.kill.bind(process);
  Object.assign(process, {
    exit: () => refuse('process.exit'),
    reallyExit: () => refuse('process.reallyExit'),
    abort: () => refuse('process.abort'),
    kill: (pid: number, signal?: string | number) => {
      const isProbe = signal === 0;
      if (!isProbe && isOwn(pid)) return refuse(`process.kill(${pid}, ${signal ?? 'SIGTERM'})`);
      return kill(pid, signal);
    },
  });
  // So that `import { exit } from 'node:process'` gets the guarded ones too.
  syncBuiltinESMExports();
}

/** The process itself, its group, the pool's process, or all processes. */
function isOwn(pid: number): boolean {
  return [0, -1, process.pid, -process.pid, process.ppid].includes(Number(pid));
}
