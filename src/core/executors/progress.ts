/**
 * Sends the progress of runs: the first at once, then at most one of a run every progressMs, unless
 * flushed. All runs share one timer, the only one of a child's runs.
 */
import { progressMs } from './limits.ts';
import type { Outbox } from './lines.ts';
import type { Run } from './part.ts';

export interface Progress {
  report(run: Run, fraction: number, note: string | null): void;
  /** Sends the run's waiting progress, so that its next message comes after. */
  flush(run: Run): void;
}

export function createProgress(outbox: Outbox): Progress {
  const latest = new Map<Run, string>();
  let isQuiet = true;
  const send = (): void => {
    isQuiet = latest.size === 0;
    if (isQuiet) return;
    for (const message of latest.values()) outbox.push(message);
    latest.clear();
    setTimeout(send, progressMs);
  };
  return {
    report(run, fraction, note) {
      latest.set(run, JSON.stringify(['progress', run.id, fraction, note]));
      if (isQuiet) send();
    },
    flush(run) {
      const message = latest.size === 0 ? undefined : latest.get(run);
      if (message === undefined) return;
      latest.delete(run);
      outbox.push(message);
    },
  };
}
