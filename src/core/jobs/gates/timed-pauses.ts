/**
 * Pauses that end by themselves, such as after a service has refused a request: each has a name and a moment, in the database,
 * so all processes keep it and it outlives them. A later refusal lets a pause last longer, never shorter.
 */
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import type { Context } from '../../context/context.ts';
import { isTimedPause } from './gates.ts';
import { beginPauses, listPauses } from './timed-pauses.store.ts';

/** The longest pause: an hour, which is also the longest delay between two attempts. */
const pauseMaxMs = 3_600_000;

export class TimedPauses {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Begins pauses of so many milliseconds, or lets those under way last so long. */
  async begin(
    tx: Transaction,
    pauses: readonly { readonly name: string; readonly ms: number }[],
  ): Promise<void> {
    if (pauses.length === 0) return;
    const now = this.#context.clock.now();
    const longest = new Map<string, number>();
    for (const { name, ms } of pauses) {
      const until = now + Math.min(Math.ceil(ms), pauseMaxMs);
      longest.set(name, Math.max(until, longest.get(name) ?? 0));
    }
    await beginPauses(
      tx,
      Array.from(longest, ([name, until]) => ({ name, until })),
      now + pauseMaxMs,
    );
  }

  /** When those of the gates that are pauses under way end. */
  async ends(db: Handle, gates: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const names = gates.filter(isTimedPause);
    if (names.length === 0) return new Map();
    const now = this.#context.clock.now();
    // One that would last longer is of a clock that was set back since.
    const rows = await listPauses(db, { names, after: now, to: now + pauseMaxMs });
    return new Map(rows.map(({ name, until }) => [name, Number(until)]));
  }
}
