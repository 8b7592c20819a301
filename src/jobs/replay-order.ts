/**
 * The order in which a run gets the ends of its steps and waits. Each end has a place in it, on record, so that a
 * repeated run gets them in the same order and a race has the same winner again. Timestamps would not do: an
 * event may come before a step ends, and reach the run after that. A run asks for parallel steps and waits at once,
 * and the database answers them in any order; what one branch asks for next depends on an answer. So an end
 * from the record is held until each question that came with it is known to be on record or not, and until
 * the code has asked for all ends with earlier places. Ends that no run has got come last. An end is held
 * for `patienceMs` at most: then the code is taken not to ask for the earlier ones.
 */
import type { RecordedEnd } from '../journal/records.ts';

/** One question for a step or a wait. */
export interface ReplayTurn {
  /** It is answered from the record. Resolves when the answer may be given. */
  recorded(end: RecordedEnd): Promise<void>;
  /** It is not answered from the record. Does nothing after `recorded`. */
  notRecorded(): void;
  /** What it asked for has ended now. Resolves when the answer may be given. */
  ended(n: number): Promise<void>;
}

export interface ReplayOrder {
  enter(): ReplayTurn;
  /** Runs the write of an end, with its place. Resolves after the run has got those with earlier places. */
  write<T>(end: (place: number) => Promise<T>): Promise<T>;
}

/** What the journal knows of places. */
export interface Places {
  /** Takes the next one. */
  next(): number;
  /** Notes the place of an end that is on record without one. */
  note(n: number, place: number): void;
  /** The least place on record whose end the code has still to ask for; infinite if there is none. */
  awaited(): number;
}

/** How long an end is held for the code to ask for one with an earlier place. */
const patienceMs = 5_000;

type HeldEnd = RecordedEnd & { readonly give: (told?: Promise<void>) => void };

interface Order extends Places {
  undecided: number;
  held: HeldEnd[];
  isGiving: boolean;
  /** Settles when the run has got the ends that have a place so far. */
  told: Promise<unknown>;
  patience: NodeJS.Timeout | undefined;
  /** The code did not ask for what is on record, or the run has ended. */
  isOver: boolean;
}

/** Once the signal aborts, no end is held any more. */
export function createReplayOrder(places: Places, signal: AbortSignal): ReplayOrder {
  const order: Order = {
    ...places,
    undecided: 0,
    held: [],
    isGiving: false,
    told: Promise.resolve(),
    patience: undefined,
    isOver: signal.aborted,
  };
  signal.addEventListener('abort', () => giveUp(order), { once: true });
  return { enter: () => enter(order), write: (end) => write(order, end) };
}

function enter(order: Order): ReplayTurn {
  let isDecided = false;
  order.undecided += 1;
  const decide = () => {
    isDecided = true;
    order.undecided -= 1;
    void giveHeld(order);
  };
  return {
    recorded(end) {
      const held = hold(order, end);
      decide();
      return held;
    },
    notRecorded() {
      if (!isDecided) decide();
    },
    async ended(n) {
      if (order.held.length === 0 && !isAwaiting(order, null)) return tell(order, n);
      const held = hold(order, { n, at: Number.MAX_SAFE_INTEGER, told: null });
      void giveHeld(order);
      return held;
    },
  };
}

function hold({ held }: Order, end: RecordedEnd): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  held.push({ ...end, give: resolve });
  return promise;
}

/** Gives the ends one by one: the answer to the one is on its way before the other is given. */
async function giveHeld(order: Order): Promise<void> {
  clearTimeout(order.patience);
  if (order.isGiving) return;
  order.isGiving = true;
  for (let isFirst = true; order.undecided === 0; isFirst = false) {
    const [first] = order.held.sort(compare);
    if (first === undefined || isAwaiting(order, first.told)) break;
    if (!isFirst) {
      await turnOfLoop();
      // Meanwhile the code may have asked for an end with an earlier place.
      if (order.undecided > 0 || order.held.sort(compare)[0] !== first) continue;
    }
    order.held.shift();
    first.give(first.told === null ? tell(order, first.n) : undefined);
  }
  order.isGiving = false;
  if (order.undecided > 0 || order.held.length === 0) return;
  order.patience = setTimeout(() => giveUp(order), patienceMs).unref();
}

/** Whether the code has still to ask for an end with an earlier place. */
function isAwaiting({ isOver, awaited }: Order, place: number | null): boolean {
  return !isOver && awaited() < (place ?? Number.POSITIVE_INFINITY);
}

function giveUp(order: Order): void {
  order.isOver = true;
  void giveHeld(order);
}

/** Ends that no run has got are ordered by their timestamps. */
function compare(a: RecordedEnd, b: RecordedEnd): number {
  if (a.told !== null && b.told !== null) return a.told - b.told;
  if (a.told !== b.told) return a.told === null ? 1 : -1;
  return a.at - b.at || a.n - b.n;
}

/** Gives an end the next place, and waits until the run has got those before it. */
function tell(order: Order, n: number): Promise<void> {
  const before = order.told;
  order.note(n, order.next());
  order.told = before.then(turnOfLoop);
  return before.then(() => {});
}

async function write<T>(order: Order, end: (place: number) => Promise<T>): Promise<T> {
  const before = order.told;
  const written = end(order.next());
  // The answer to this one is on its way before the next goes.
  order.told = Promise.allSettled([before, written]).then(turnOfLoop);
  const result = await written;
  await before;
  return result;
}

function turnOfLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
