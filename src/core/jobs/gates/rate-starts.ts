/**
 * Starts: what counts at rates. A start is recorded as the code of a run begins, in the transaction that gives up the place
 * which kept room for it, so a crash neither forgets one nor leaks a place. Starts are in the database, so all processes count
 * the same ones.
 */
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import type { Context } from '../../context/context.ts';
import type { ClaimedJob } from '../jobs.store.ts';
import { lockGates } from './gate-locks.ts';
import { markGated } from './held-jobs.store.ts';
import {
  addStarts,
  countStarts,
  findPastGates,
  forgetPastStarts,
  forgetPlacesAt,
  shortenStarts,
  takeStarts,
} from './rate-starts.store.ts';
import { countsAtMost, countsUntil, isRate, slackOf, windowOf } from './rates.ts';

/** A start is recorded again where that took longer than the code may take to begin, with so many times as much. */
const slackGrowth = 4;
const triesMax = 3;
const growthMax = slackGrowth ** (triesMax - 1);
/** Between two searches for starts that count no longer, and the rows that one finds. */
const forgetEveryMs = 60_000;
const forgottenMax = 1_000;

export class RateStarts {
  readonly #context: Context;
  /** In monotonic milliseconds. */
  #forgetAt = 0;

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * How many starts count at each of the gates; those without one are left out. And those of the gates at which starts count longer
   * than any that is made now: the clock was set back since.
   */
  async count(db: Handle, names: readonly string[]) {
    const gates = names.filter(isRate);
    if (gates.length === 0) return { starts: new Map<string, number>(), tooLong: [] };
    const rows = await countStarts(db, { gates, now: this.#context.clock.now() });
    const late = rows.filter(({ gate, last }) => Number(last) > this.#latest(gate));
    return {
      starts: new Map(rows.map(({ gate, starts }) => [gate, Number(starts)])),
      tooLong: late.map(({ gate }) => gate),
    };
  }

  /**
   * Records that the code of work begins now; whether the claim still holds its job. Resolves when it may begin at once.
   * `n` is 0 for the job itself, else the number of the step that calls a skill.
   */
  async countStart(
    claim: Pick<ClaimedJob, 'id' | 'epoch'>,
    n: number,
    gates: readonly string[],
  ): Promise<boolean> {
    const { clock, database } = this.#context;
    let recorded: readonly { gate: string; until: number }[] = [];
    const leastSlackMs = Math.min(...gates.map((gate) => slackOf(windowOf(gate) ?? 0)));
    for (let tries = 1, growth = 1; ; tries++, growth *= slackGrowth) {
      const earlier = recorded;
      let from = 0;
      const isHeld = await database.write(async (tx) => {
        if ((await markGated(tx, claim)) === undefined) return false;
        await lockGates(tx, gates);
        const now = clock.now();
        from = clock.monotonic();
        recorded = gates.map((gate) => {
          const windowMs = windowOf(gate) ?? 0;
          return { gate, until: countsUntil(now, slackOf(windowMs) * growth, windowMs) };
        });
        await forgetPlacesAt(tx, gates, { job_id: claim.id, n });
        await forgetPastStarts(tx, gates, now);
        await addStarts(
          tx,
          recorded.map((start) => ({ ...start, starts: 1 })),
        );
        await takeStarts(tx, earlier);
        return true;
      });
      const isInTime = clock.monotonic() - from <= leastSlackMs * growth;
      if (!isHeld || tries === triesMax || isInTime) return isHeld;
    }
  }

  /** When the first start of each of the gates that are rates counts no longer. */
  async nextFree(db: Handle, names: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const gates = names.filter(isRate);
    if (gates.length === 0) return new Map();
    const now = this.#context.clock.now();
    const rows = await countStarts(db, { gates, now });
    const firsts = new Map(rows.map(({ gate, first }) => [gate, Number(first)]));
    return new Map(
      gates.map((gate) => {
        const windowMs = windowOf(gate) ?? 0;
        // Where work keeps all places that has not begun, the first start is yet to come.
        return [gate, firsts.get(gate) ?? countsUntil(now, slackOf(windowMs), windowMs)];
      }),
    );
  }

  /** Lets the starts of a gate that the transaction has locked count for no longer than those that are made now. */
  shorten(tx: Transaction, gate: string): Promise<void> {
    const windowMs = windowOf(gate) ?? 0;
    const until = countsUntil(this.#context.clock.now(), slackOf(windowMs), windowMs);
    return shortenStarts(tx, gate, until);
  }

  #latest(gate: string): number {
    const windowMs = windowOf(gate) ?? 0;
    return countsAtMost(this.#context.clock.now(), slackOf(windowMs) * growthMax, windowMs);
  }

  /** Forgets, once in a while, what counts no longer at gates where nothing begins any more. */
  async forgetPast(): Promise<void> {
    const { clock, database } = this.#context;
    if (clock.monotonic() < this.#forgetAt) return;
    this.#forgetAt = clock.monotonic() + forgetEveryMs;
    const now = clock.now();
    const found = await findPastGates(database.read, { now, limit: forgottenMax });
    const gates = [...new Set(found.map(({ gate }) => gate))].toSorted();
    if (gates.length === 0) return;
    await database.write(async (tx) => {
      await lockGates(tx, gates);
      await forgetPastStarts(tx, gates, now);
    });
  }
}
