import type { ExecutorPool } from '../../src/core/executors/pool.ts';
import type { RunOutcome, RunReport, RunRequest } from '../../src/core/executors/run.ts';

/** A run that goes on until the test ends it. */
export interface ScriptedRun {
  readonly request: RunRequest;
  /** Why it was asked to stop; null while it was not. */
  readonly aborted: string | null;
  /** How often it was asked to end as waiting; the test ends it so. */
  readonly suspensions: number;
  report(report: RunReport): void;
  /** `step` is the step of the run in which it asks, null when it is left out. */
  ask(kind: string, payload: unknown, step?: number): Promise<unknown>;
  end(outcome: RunOutcome): void;
}

export interface ScriptedPool extends ExecutorPool {
  /** Every run that was begun, in order. */
  readonly runs: readonly ScriptedRun[];
  /** The next run of a job that no call has returned yet; null when `unless` resolves first. */
  begun(jobId: string): Promise<ScriptedRun>;
  begun(jobId: string, unless: Promise<unknown>): Promise<ScriptedRun | null>;
}

/** Executors that run nothing: each run says and comes to what the test makes it. */
export function scriptedPool(): ScriptedPool {
  const runs: ScriptedRun[] = [];
  const unseen: ScriptedRun[] = [];
  const waiting = new Set<{ jobId: string; resolve(run: ScriptedRun | null): void }>();
  let inFlight = 0;

  function begun(jobId: string): Promise<ScriptedRun>;
  function begun(jobId: string, unless?: Promise<unknown>): Promise<ScriptedRun | null>;
  function begun(jobId: string, unless?: Promise<unknown>): Promise<ScriptedRun | null> {
    const at = unseen.findIndex(({ request }) => request.context.jobId === jobId);
    const [run] = at < 0 ? [] : unseen.splice(at, 1);
    if (run !== undefined) return Promise.resolve(run);
    return new Promise((resolve, reject) => {
      const waiter = { jobId, resolve };
      waiting.add(waiter);
      const giveUp = () => {
        waiting.delete(waiter);
        resolve(null);
      };
      unless?.then(giveUp, (error) => {
        waiting.delete(waiter);
        reject(error);
      });
    });
  }

  return {
    definitions: [],
    leftOut: [],
    runs,

    run(request, handlers) {
      const { promise, resolve } = Promise.withResolvers<RunOutcome>();
      let aborted: string | null = null;
      let suspensions = 0;
      inFlight++;
      let isPermitted = handlers.confirmStart === undefined;
      const run: ScriptedRun = {
        request,
        get aborted() {
          return aborted;
        },
        get suspensions() {
          return suspensions;
        },
        report: (report) => handlers.onReport(report),
        ask(kind, payload, step) {
          const signal = aborted === null ? new AbortController().signal : AbortSignal.abort();
          return handlers.onAsk(kind, payload, signal, step ?? null);
        },
        end(outcome) {
          inFlight--;
          resolve(outcome);
        },
      };
      const begin = () => {
        runs.push(run);
        const { jobId } = request.context;
        const waiter = [...waiting].find((one) => one.jobId === jobId);
        if (waiter === undefined) unseen.push(run);
        else {
          waiting.delete(waiter);
          waiter.resolve(run);
        }
      };
      if (isPermitted) begin();
      else
        void handlers.confirmStart?.().then((may) => {
          isPermitted = may && aborted === null;
          if (isPermitted) begin();
          else if (aborted === null) run.end({ kind: 'aborted' });
        });
      return {
        outcome: promise,
        abort(reason) {
          aborted ??= reason;
          // As in the pool: no executor has it.
          if (!isPermitted) run.end({ kind: 'aborted' });
        },
        suspend() {
          suspensions++;
        },
      };
    },

    begun,
    warm() {},

    stats: () => ({
      executors: 1,
      starting: 0,
      inFlight,
      waiting: 0,
      waitedMs: 0,
      deaths: 0,
      failedStarts: 0,
    }),
    async retire() {},
    async stop() {},
  };
}
