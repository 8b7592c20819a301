/** The request that a run stop, as its code sees it. */
import type { Run } from './part.ts';

/** Made at its first use: most runs never read it. */
export function signalOf(run: Run): AbortSignal {
  run.controller ??= new AbortController();
  if (run.abortedWith !== undefined) run.controller.abort(run.abortedWith);
  return run.controller.signal;
}

/** Tells the run to stop. */
export function abortRun(run: Run, name: string, reason: string): void {
  const error = new Error(reason);
  error.name = name;
  run.abortedWith = error;
  run.controller?.abort(error);
}
