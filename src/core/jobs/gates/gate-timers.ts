/**
 * Timers for gates at which work waits until time has passed: a process that holds work there, or passes places on, sets one
 * for the moment of the next place, so none polls. The sweep makes up for those of a process that has died.
 */
import type { Clock } from '../../../kernel/clock.ts';

/** Gates that have a timer here; the sweep passes on the places of others. */
const timersMax = 10_000;

export class GateTimers {
  readonly #clock: Clock;
  readonly #gates = new Set<string>();
  #onFree: (gate: string) => Promise<unknown> = () => Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sets what is done once a gate may have free places. */
  whenFree(onFree: (gate: string) => Promise<unknown>): void {
    this.#onFree = onFree;
  }

  has(gate: string): boolean {
    return this.#gates.has(gate);
  }

  /** Sets the timer of a gate that has none. */
  set(gate: string, at: number): void {
    if (this.#gates.size >= timersMax || this.#gates.has(gate)) return;
    this.#gates.add(gate);
    const end = () => {
      this.#gates.delete(gate);
      // While the database is away the sweep waits for it, too.
      this.#onFree(gate).catch(() => {});
    };
    setTimeout(end, Math.max(0, at - this.#clock.now())).unref();
  }
}
