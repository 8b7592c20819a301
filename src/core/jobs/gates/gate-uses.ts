/**
 * How gates stand: the places that are taken, the starts that count at rates, and the pauses that end by themselves. Each
 * pause has a name and a moment in the database, so all processes keep it and it outlives them. For a gate at which work waits
 * until time has passed, the process that holds work there, or passes places on, sets a timer for the moment of the next place,
 * so none polls. The sweep makes up for the timers of a process that has died.
 */
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Context } from '../../context/context.ts';
import { isOfStarts, isTimedPause } from './gates.ts';
import { countPlaces, openGates } from './places.store.ts';
import { RateStarts } from './rate-starts.ts';
import { insertPauses, listPauses } from './timed-pauses.store.ts';

/** Gates that have a timer here; the sweep passes on the places of others. */
const timersMax = 10_000;
/** The longest pause: an hour, which is also the longest delay between two attempts. */
const pauseMaxMs = 3_600_000;

export class GateUses {
  readonly starts: RateStarts;
  readonly #clock: Clock;
  /** The gates that have a timer here. */
  readonly #timed = new Set<string>();
  /** What is done once a gate may have free places. */
  readonly #onFree: (gate: string) => Promise<unknown>;

  constructor(context: Context, onFree: (gate: string) => Promise<unknown>) {
    this.starts = new RateStarts(context);
    this.#clock = context.clock;
    this.#onFree = onFree;
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
    for (const name of (await this.pauseEnds(db, names)).keys())
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
    const unwatched = names.filter((name) => isOfStarts(name) && !this.#timed.has(name));
    if (unwatched.length === 0) return;
    const moments = [
      ...(await this.starts.nextFree(tx, unwatched)),
      ...(await this.pauseEnds(tx, unwatched)),
    ];
    tx.afterCommit(() => {
      for (const [name, at] of moments) this.#setTimer(name, at);
    });
  }

  /** The same for one gate, which the transaction has locked, after it has shortened what would hold it for too long. */
  async mended(tx: Transaction, name: string) {
    const counts = await this.counts(tx, [name]);
    if (counts.tooLong.length === 0) return counts;
    await this.starts.shorten(tx, name);
    return this.counts(tx, [name]);
  }

  /**
   * Begins pauses of so many milliseconds, such as after a service has refused a request, or lets those under way last so
   * long: a later refusal lets a pause last longer, never shorter.
   */
  async beginPauses(
    tx: Transaction,
    pauses: readonly { readonly name: string; readonly ms: number }[],
  ): Promise<void> {
    if (pauses.length === 0) return;
    const now = this.#clock.now();
    const longest = new Map<string, number>();
    for (const { name, ms } of pauses) {
      const until = now + Math.min(Math.ceil(ms), pauseMaxMs);
      longest.set(name, Math.max(until, longest.get(name) ?? 0));
    }
    await insertPauses(
      tx,
      Array.from(longest, ([name, until]) => ({ name, until })),
      now + pauseMaxMs,
    );
  }

  /** When those of the gates that are pauses under way end. */
  async pauseEnds(db: Handle, gates: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const names = gates.filter(isTimedPause);
    if (names.length === 0) return new Map();
    const now = this.#clock.now();
    // One that would last longer is of a clock that was set back since.
    const rows = await listPauses(db, { names, after: now, to: now + pauseMaxMs });
    return new Map(rows.map(({ name, until }) => [name, Number(until)]));
  }

  /** Sets the timer of a gate that has none. */
  #setTimer(gate: string, at: number): void {
    if (this.#timed.size >= timersMax || this.#timed.has(gate)) return;
    this.#timed.add(gate);
    const end = () => {
      this.#timed.delete(gate);
      // While the database is away the sweep waits for it, too.
      this.#onFree(gate).catch(() => {});
    };
    setTimeout(end, Math.max(0, at - this.#clock.now())).unref();
  }
}
