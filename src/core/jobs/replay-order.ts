/**
 * The order in which a run gets the ends of its steps and waits. Each end has a place in it, on record, so that a
 * repeated run gets them in the same order and a race has the same winner again. Timestamps would not do: an
 * event may come before a step ends, and reach the run after that. A run asks for parallel steps and waits at once,
 * and the database answers them in any order; what one branch asks for next depends on an answer. So an end
 * from the record is held until each question that came with it is known to be on record or not, and until
 * the code has asked for all ends with earlier places. Ends that no run has got come last. An end is held
 * for the patience at most: then the code is taken not to ask for the earlier ones.
 */
import type { RecordedEnd } from '../journal/records.ts';

/** One question for a step or a wait. */
export interface ReplayTurn {
  /** It is answered from the record. Resolves when the answer may be given. */
  recorded(end: RecordedEnd): Promise<void>;
  /** It is not answered from the record. Does nothing after `recorded`. */
  notRecorded(): void;
  /** The asked step has ended now. Resolves when the answer may be given. */
  ended(n: number): Promise<void>;
}

export interface ReplayOrder {
  enter(): ReplayTurn;
  /**
   * Runs the write of an end, with its place. Resolves after the run has got the new ends before it, and those on
   * record with places before `after`.
   */
  write<T>(end: (place: number) => Promise<T>, after: number): Promise<T>;
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
const patienceDefaultMs = 5_000;
/** In place of the number of a step whose end is on record with its place already. */
const newStep = 0;

type HeldEnd = RecordedEnd & { readonly give: (told?: Promise<void>) => void };

interface Order extends Places {
  readonly patienceMs: number;
  undecided: number;
  held: HeldEnd[];
  isGiving: boolean;
  /** Settles when the run has got the ends that have a place so far. */
  told: Promise<unknown>;
  /** The place of the last new end that the run has got. */
  last: number;
  patience: NodeJS.Timeout | undefined;
  /** The code did not ask for the recorded step, or the run has ended. */
  isOver: boolean;
}

/** Once the signal aborts, no end is held any more. */
export function createReplayOrder(
  places: Places,
  signal: AbortSignal,
  patienceMs = patienceDefaultMs,
): ReplayOrder {
  const order: Order = {
    ...places,
    patienceMs,
    undecided: 0,
    held: [],
    isGiving: false,
    told: Promise.resolve(),
    last: 0,
    patience: undefined,
    isOver: signal.aborted,
  };
  signal.addEventListener('abort', () => giveUp(order), { once: true });
  return { enter: () => enter(order), write: (...asked) => write(order, ...asked) };
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
      return holdNew(order, n, null) ?? tell(order, n);
    },
  };
}

function hold({ held }: Order, end: RecordedEnd): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  held.push({ ...end, give: resolve });
  return promise;
}

/** Holds an end of now, if an end on record may come before it. */
function holdNew(order: Order, n: number, told: number | null): Promise<void> | undefined {
  if (order.held.length === 0 && !isAwaiting(order, told)) return undefined;
  const held = hold(order, { n, at: Number.MAX_SAFE_INTEGER, told });
  void giveHeld(order);
  return held;
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
    first.give(isInPlace(order, first) ? undefined : tell(order, first.n));
  }
  order.isGiving = false;
  if (order.undecided > 0 || order.held.length === 0) return;
  order.patience = setTimeout(() => giveUp(order), order.patienceMs).unref();
}

/** Whether the place of a held end is the one in which the run gets it: it has one, and is not too late. */
function isInPlace({ last }: Order, { n, told }: HeldEnd): boolean {
  return n === newStep || (told !== null && told > last);
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
  order.last = order.next();
  order.note(n, order.last);
  order.told = before.then(turnOfLoop);
  return before.then(() => {});
}

async function write<T>(
  order: Order,
  end: (place: number) => Promise<T>,
  after: number,
): Promise<T> {
  const before = order.told;
  const place = order.next();
  const written = end(place);
  // The answer to this one is on its way before the next goes.
  order.told = Promise.allSettled([before, written]).then(turnOfLoop);
  const result = await written;
  await before;
  // The step may have ended before the code has asked for ends on record.
  const held = holdNew(order, newStep, Math.min(after, place));
  if (held !== undefined) await held;
  order.last = Math.max(order.last, place);
  return result;
}

function turnOfLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
