/** Calls at a pace, as the processes of a platform make them, in simulated time and without a database. */
import type { MinuteLimits } from '../../src/adapters/models/providers.ts';
import { type Asking, takeMoment } from '../../src/core/paces/moments.ts';
import { freshPace, type Pace } from '../../src/core/paces/pace-rule.ts';

export const noLimits: MinuteLimits = { calls: null, tokens: null };
export const begin = 1_700_000_000_000;

export const asking: Asking = {
  organization: 'one',
  weight: 1,
  tokens: 1_000,
  until: Infinity,
  hasWaited: false,
};

export class SimulatedPace {
  pace: Pace;
  limits: MinuteLimits;
  /** In milliseconds since `begin`. */
  now = 0;
  #late = 0;
  readonly #events: { readonly at: number; run(): void }[] = [];

  constructor(pace: Pace = freshPace, limits: MinuteLimits = noLimits) {
    this.pace = pace;
    this.limits = limits;
  }

  at(ms: number, run: () => void): void {
    this.#events.push({ at: ms, run });
  }

  /** What a call that asks now gets of the pace. */
  take(more: Partial<Asking> = {}) {
    const limited = [{ pace: this.pace, limits: this.limits }];
    const taken = takeMoment(limited, { ...asking, ...more }, begin + this.now);
    this.pace = taken.paces[0] as Pace;
    return { ...taken, at: taken.at - begin };
  }

  /** A call asks until it has a moment, and is made then. Runs that have to wait for longer are loaded late. */
  ask(more: Partial<Asking>, call: () => void, lateMs = 0): void {
    const { kind, at } = this.take(more);
    // As by chance.
    const spread = kind === 'late' ? 30_000 * ((++this.#late * 0.618) % 1) : 0;
    const isUnloaded = at - this.now > 10_000;
    this.at(at + spread + (isUnloaded ? lateMs : 0), () => {
      if (kind === 'moment') call();
      else this.ask({ ...more, hasWaited: true }, call, lateMs);
    });
  }

  run(): void {
    for (;;) {
      let first = 0;
      for (const [i, { at }] of this.#events.entries())
        if (at < (this.#events[first]?.at ?? 0)) first = i;
      const [event] = this.#events.splice(first, 1);
      if (event === undefined) return;
      this.now = event.at;
      event.run();
    }
  }
}
