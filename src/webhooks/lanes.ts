/**
 * Lanes: who is delivered to at the same time. Each host has a lane of its own with few places, fewer
 * still while it does not answer quickly, so that a slow receiver holds up nobody but itself. Half of
 * all places are for hosts whose last answers were quick, so that any number of others cannot hold
 * them all. What finds no place waits in its lane without holding one; what finds no room there is
 * turned away, for the sweep to find again. Lanes that could go on take turns. Nothing here is
 * remembered across a restart.
 */

/** Deliveries to one host at a time. */
export const hostPlacesMax = 20;
/** An answer that takes longer holds its place as long as none does, and counts as none here. */
export const quickMs = 2_000;
/** As `hostPlacesMax`, to a host that does not answer quickly. */
const slowPlacesMax = 2;
/** Deliveries in a row that bring no quick answer, after which a host counts as slow. */
const slowAfter = 3;
/**
 * Quick answers in a row after which a host counts as quick. As many as it has places, so that one
 * that answers quickly now and then only to be given all places again does not get there.
 */
const quickAfter = hostPlacesMax;
/** Deliveries at a time over all hosts. */
const placesMax = 500;
/** Of those, to hosts that do not count as quick; and to slow ones, which leave room for new ones. */
const unprovenMax = 250;
const slowMax = 125;
/** Deliveries that wait for a place, in one lane and in all. */
const laneWaitingMax = 1_000;
const waitingMax = 20_000;
/** Lanes remembered only for how their host has answered. */
const rememberedMax = 10_000;

/** How a delivery went: whether its host answered quickly, whatever it said; null: nothing was sent. */
export type Heard = boolean | null;

/** What is known of a host, in the order in which lanes get a place that is free. */
const paces = ['slow', 'new', 'quick'] as const;
type Pace = (typeof paces)[number];

export interface Lanes {
  /** Delivers in its turn; ignores what it has already. False when there is no room. */
  add(host: string, id: string): boolean;
  /** Hosts whose lanes have enough to do. */
  full(): string[];
  /** Begins no more and forgets what waits; resolves when what is under way has ended. */
  stop(): Promise<void>;
}

interface Lane {
  readonly host: string;
  /** In order of arrival. */
  readonly waiting: Set<string>;
  readonly running: Set<string>;
  /** Deliveries in a row that brought no quick answer, and that brought one. */
  unheard: number;
  heard: number;
}

/** `deliver` takes one delivery to its end, and never rejects. */
export function createLanes(deliver: (id: string) => Promise<Heard>): Lanes {
  const lanes = new Map<string, Lane>();
  /** Lanes that could begin a delivery; the first one's turn is next. */
  const ready = { slow: new Set<Lane>(), new: new Set<Lane>(), quick: new Set<Lane>() };
  /** Deliveries under way, by what was known of their host when they began. */
  const running = { slow: 0, new: 0, quick: 0 };
  let waiting = 0;
  let onIdle: (() => void) | null = null;
  let isStopped = false;

  function laneOf(host: string): Lane {
    let lane = lanes.get(host);
    if (lane === undefined) {
      lane = { host, waiting: new Set(), running: new Set(), unheard: 0, heard: 0 };
      lanes.set(host, lane);
      if (lanes.size > rememberedMax) forgetOne();
    }
    return lane;
  }

  /** The oldest lane in which nothing happens. */
  function forgetOne(): void {
    for (const lane of lanes.values()) {
      if (!isQuiet(lane)) continue;
      lanes.delete(lane.host);
      return;
    }
  }

  /** Gives a lane its turn when it has something to begin, and a place of its own for it. */
  function queueUp(lane: Lane): void {
    const pace = paceOf(lane);
    const places = pace === 'slow' ? slowPlacesMax : hostPlacesMax;
    if (lane.waiting.size === 0 || lane.running.size >= places) return;
    ready[pace].add(lane);
  }

  function total(): number {
    return running.slow + running.new + running.quick;
  }

  function isRoomFor(pace: Pace): boolean {
    if (total() >= placesMax) return false;
    if (pace === 'quick') return true;
    if (pace === 'slow' && running.slow >= slowMax) return false;
    return running.slow + running.new < unprovenMax;
  }

  /** Whose turn it is. */
  function next(): Lane | undefined {
    for (const pace of paces) {
      const [lane] = isRoomFor(pace) ? ready[pace] : [];
      if (lane === undefined) continue;
      ready[pace].delete(lane);
      return lane;
    }
    return undefined;
  }

  function beginAll(): void {
    for (let lane = next(); lane !== undefined; lane = next()) {
      begin(lane);
      queueUp(lane);
    }
  }

  function begin(lane: Lane): void {
    const [id] = lane.waiting;
    if (id === undefined) return;
    const pace = paceOf(lane);
    lane.waiting.delete(id);
    lane.running.add(id);
    waiting--;
    running[pace]++;
    void deliver(id).then((heard) => {
      lane.running.delete(id);
      running[pace]--;
      if (heard !== null) hear(lane, heard);
      if (isQuiet(lane) && lane.unheard === 0 && lane.heard === 0) lanes.delete(lane.host);
      queueUp(lane);
      beginAll();
      if (total() === 0) onIdle?.();
    });
  }

  function hear(lane: Lane, heard: boolean): void {
    lane.unheard = heard ? 0 : lane.unheard + 1;
    lane.heard = heard ? lane.heard + 1 : 0;
    for (const pace of paces) ready[pace].delete(lane);
  }

  return {
    add(host, id) {
      if (isStopped || waiting >= waitingMax) return false;
      const lane = laneOf(host);
      if (lane.running.has(id) || lane.waiting.has(id)) return true;
      if (lane.waiting.size >= laneWaitingMax) return false;
      lane.waiting.add(id);
      waiting++;
      queueUp(lane);
      beginAll();
      return true;
    },

    full: () =>
      [...lanes.values()]
        .filter((lane) => lane.waiting.size >= laneWaitingMax / 2)
        .map((lane) => lane.host),

    stop() {
      isStopped = true;
      for (const pace of paces) ready[pace].clear();
      for (const lane of lanes.values()) lane.waiting.clear();
      waiting = 0;
      if (total() === 0) return Promise.resolve();
      return new Promise((resolve) => {
        onIdle = resolve;
      });
    },
  };
}

function paceOf({ unheard, heard }: Lane): Pace {
  if (unheard >= slowAfter) return 'slow';
  return heard >= quickAfter ? 'quick' : 'new';
}

function isQuiet(lane: Lane): boolean {
  return lane.waiting.size === 0 && lane.running.size === 0;
}
