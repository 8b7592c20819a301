/**
 * The order in which a run gets the ends of its steps and waits. Each result stores a sequence number, its place: a
 * replay delivers results in that order, so that a race has the same winner again. Timestamps are not enough: an
 * event may come before a step ends, and reach the run after that. A run requests parallel steps and waits at once,
 * and the database answers them in any order; the next request of a branch depends on an answer. So a recorded
 * result is held until each request that came with it is known to be on record or not, and until the code has
 * requested all results with earlier places. Undelivered results come last. A result is held for the patience at
 * most: the code is then assumed not to request the earlier ones.
 */
import type { RecordedEnd } from '../../journal/records.ts';
import type { ReplayPositions } from './replay-positions.ts';

/** One question for a step or a wait. */
export interface ReplayTurn {
  /** It is answered from the record. Resolves when the answer may be given. */
  recorded(end: RecordedEnd): Promise<void>;
  /** It is not answered from the record. Does nothing after `recorded`. */
  notRecorded(): void;
  /** The requested step has ended now. Resolves when the answer may be given. */
  ended(n: number): Promise<void>;
}

/** In place of the number of a step whose end is on record with its place already. */
const newStep = 0;

type HeldEnd = RecordedEnd & { readonly given: PromiseWithResolvers<void> };

export class ReplayOrder {
  readonly #places: ReplayPositions;
  readonly #patienceMs: number;
  #undecided = 0;
  readonly #held: HeldEnd[] = [];
  #isGiving = false;
  /** Settles when the run has got the ends that have a place so far. */
  #given: Promise<unknown> = Promise.resolve();
  /** The place of the last new end that the run has got. */
  #last = 0;
  #patience: NodeJS.Timeout | undefined;
  /** The code did not request the recorded step, or the run has ended. */
  #isOver: boolean;

  /** Once the signal aborts, no end is held any more; one is held for the patience at most. */
  constructor(places: ReplayPositions, signal: AbortSignal, patienceMs: number) {
    this.#places = places;
    this.#patienceMs = patienceMs;
    this.#isOver = signal.aborted;
    signal.addEventListener('abort', () => this.#giveUp(), { once: true });
  }

  enter(): ReplayTurn {
    let isDecided = false;
    this.#undecided += 1;
    const decide = () => {
      isDecided = true;
      this.#undecided -= 1;
      void this.#giveHeld();
    };
    return {
      recorded: (end) => {
        const held = this.#hold(end);
        decide();
        return held;
      },
      notRecorded() {
        if (!isDecided) decide();
      },
      ended: async (n) => this.#holdNew(n, null) ?? this.#giveNext(n),
    };
  }

  /**
   * Runs the write of an end, with its place. Resolves after the run has got the new ends before it, and those on
   * record with places before `after`.
   */
  async write<T>(end: (place: number) => Promise<T>, after: number): Promise<T> {
    const before = this.#given;
    const place = this.#places.next();
    const written = end(place);
    // The answer to this one is on its way before the next goes.
    this.#given = Promise.allSettled([before, written]).then(turnOfLoop);
    const result = await written;
    await before;
    // The step may have ended before the code has requested ends on record.
    const held = this.#holdNew(newStep, Math.min(after, place));
    if (held !== undefined) await held;
    this.#last = Math.max(this.#last, place);
    return result;
  }

  #hold(end: RecordedEnd): Promise<void> {
    const given = Promise.withResolvers<void>();
    this.#held.push({ ...end, given });
    return given.promise;
  }

  /** Holds an end of now, if an end on record may come before it. */
  #holdNew(n: number, place: number | null): Promise<void> | undefined {
    if (this.#held.length === 0 && !this.#isAwaiting(place)) return undefined;
    const held = this.#hold({ n, at: Number.MAX_SAFE_INTEGER, place });
    void this.#giveHeld();
    return held;
  }

  /** Gives the ends one by one: the answer to the one is on its way before the other is given. */
  async #giveHeld(): Promise<void> {
    clearTimeout(this.#patience);
    if (this.#isGiving) return;
    this.#isGiving = true;
    for (let isFirst = true; this.#undecided === 0; isFirst = false) {
      const [first] = this.#held.sort(compare);
      if (first === undefined || this.#isAwaiting(first.place)) break;
      if (!isFirst) {
        await turnOfLoop();
        // Meanwhile the code may have requested an end with an earlier place.
        if (this.#undecided > 0 || this.#held.sort(compare)[0] !== first) continue;
      }
      this.#held.shift();
      first.given.resolve(this.#isInPlace(first) ? undefined : this.#giveNext(first.n));
    }
    this.#isGiving = false;
    if (this.#undecided > 0 || this.#held.length === 0) return;
    this.#patience = setTimeout(() => this.#giveUp(), this.#patienceMs).unref();
  }

  /** Whether the place of a held end is the one in which the run gets it: it has one, and is not too late. */
  #isInPlace({ n, place }: HeldEnd): boolean {
    return n === newStep || (place !== null && place > this.#last);
  }

  /** Whether the code has still to request an end with an earlier place. */
  #isAwaiting(place: number | null): boolean {
    return !this.#isOver && this.#places.awaited() < (place ?? Number.POSITIVE_INFINITY);
  }

  #giveUp(): void {
    this.#isOver = true;
    void this.#giveHeld();
  }

  /** Gives an end the next place, and waits until the run has got those before it. */
  #giveNext(n: number): Promise<void> {
    const before = this.#given;
    this.#last = this.#places.next();
    this.#places.record(n, this.#last);
    this.#given = before.then(turnOfLoop);
    return before.then(() => {});
  }
}

/** Ends that no run has got are ordered by their timestamps. */
function compare(a: RecordedEnd, b: RecordedEnd): number {
  if (a.place !== null && b.place !== null) return a.place - b.place;
  if (a.place !== b.place) return a.place === null ? 1 : -1;
  return a.at - b.at || a.n - b.n;
}

function turnOfLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
