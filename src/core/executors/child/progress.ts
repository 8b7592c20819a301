/**
 * Sends the progress of runs: the first at once, then at most one of a run every progressMs, unless
 * flushed. All runs share one timer, the only one of a child's runs.
 */
import { progressMs } from '../limits.ts';
import type { Outbox } from '../lines.ts';
import type { Run } from './part.ts';

export class Progress {
  readonly #outbox: Outbox;
  /** The last message of each run that waits to be sent. */
  readonly #latest = new Map<Run, string>();
  readonly #onTime = (): void => this.#send();
  #isQuiet = true;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  report(run: Run, fraction: number, note: string | null): void {
    this.#latest.set(run, JSON.stringify(['progress', run.id, fraction, note]));
    if (this.#isQuiet) this.#send();
  }

  /** Sends the run's waiting progress, so that its next message comes after. */
  flush(run: Run): void {
    const message = this.#latest.size === 0 ? undefined : this.#latest.get(run);
    if (message === undefined) return;
    this.#latest.delete(run);
    this.#outbox.push(message);
  }

  #send(): void {
    this.#isQuiet = this.#latest.size === 0;
    if (this.#isQuiet) return;
    for (const message of this.#latest.values()) this.#outbox.push(message);
    this.#latest.clear();
    setTimeout(this.#onTime, progressMs);
  }
}
