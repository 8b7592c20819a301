/**
 * How gates stand: the places that are taken, the starts that count at rates, and the pauses that end by themselves. For a gate
 * at which work waits until time has passed, the process that learns of it sets a timer.
 */
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import type { Context } from '../../context/context.ts';
import { GateTimers } from './gate-timers.ts';
import { isOfStarts } from './gates.ts';
import { countPlaces, openGates } from './places.store.ts';
import { RateStarts } from './rate-starts.ts';
import { TimedPauses } from './timed-pauses.ts';

export class GateUses {
  readonly starts: RateStarts;
  readonly pauses: TimedPauses;
  readonly timers: GateTimers;

  constructor(context: Context) {
    this.starts = new RateStarts(context);
    this.pauses = new TimedPauses(context);
    this.timers = new GateTimers(context.clock);
  }

  /**
   * How many places of the gates are taken, all while a gate is a pause under way; those without one may be left out. Which of
   * the gates have passed over work that still waits, and at which starts count too long because the clock was set back.
   */
  async counts(db: Handle, names: readonly string[]) {
    if (names.length === 0)
      return { taken: new Map<string, number>(), passedOver: [], tooLong: [] };
    const rows = await countPlaces(db, { names });
    const passedOver = rows.filter((row) => Number(row.passed_over) > 0).map(({ gate }) => gate);
    const taken = new Map(rows.map((row) => [row.gate, Number(row.taken)]));
    const { starts, tooLong } = await this.starts.count(db, names);
    for (const [name, n] of starts) taken.set(name, (taken.get(name) ?? 0) + n);
    for (const name of (await this.pauses.ends(db, names)).keys())
      taken.set(name, Number.POSITIVE_INFINITY);
    return { taken, passedOver, tooLong };
  }

  /** Records that work waits at the gates. */
  async open(tx: Transaction, names: readonly string[]): Promise<void> {
    await openGates(tx, names);
    await this.watch(tx, names);
  }

  /** Sets timers for the gates at which time alone makes places free. */
  async watch(tx: Transaction, names: readonly string[]): Promise<void> {
    const unwatched = names.filter((name) => isOfStarts(name) && !this.timers.has(name));
    if (unwatched.length === 0) return;
    const moments = [
      ...(await this.starts.nextFree(tx, unwatched)),
      ...(await this.pauses.ends(tx, unwatched)),
    ];
    tx.afterCommit(() => {
      for (const [name, at] of moments) this.timers.set(name, at);
    });
  }

  /** The same for one gate, which the transaction has locked, after it has shortened what would hold it for too long. */
  async mended(tx: Transaction, name: string) {
    const counts = await this.counts(tx, [name]);
    if (counts.tooLong.length === 0) return counts;
    await this.starts.shorten(tx, name);
    return this.counts(tx, [name]);
  }
}
