/**
 * Lanes: who is delivered to at the same time. Each host has a lane of its own with few places, fewer
 * still while it does not answer, so that a slow receiver holds up nobody but itself. What finds no
 * place waits in its lane without holding one; what finds no room there is turned away, for the sweep
 * to find again. Lanes that could go on take turns. Nothing here is remembered across a restart.
 */

/** Deliveries to one host at a time. */
export const hostPlacesMax = 20;
/** As `hostPlacesMax`, to a host that does not answer. */
const silentPlacesMax = 2;
/** Deliveries in a row that bring no answer, after which a host counts as silent. */
const silentAfter = 3;
/** Deliveries at a time over all hosts. */
const placesMax = 500;
/** Of those, to silent hosts, so that many of them together leave room for the others. */
const silentTotalMax = 250;
/** Deliveries that wait for a place, in one lane and in all. */
const laneWaitingMax = 1_000;
const waitingMax = 20_000;
/** Lanes remembered only because their host is silent. */
const rememberedMax = 10_000;

/** How a delivery went: whether its host answered, whatever it said; null when nothing was sent. */
export type Heard = boolean | null;

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
  /** Deliveries in a row that brought no answer. */
  unheard: number;
}

/** `deliver` takes one delivery to its end, and never rejects. */
export function createLanes(deliver: (id: string) => Promise<Heard>): Lanes {
  const lanes = new Map<string, Lane>();
  /** Lanes that could begin a delivery; the first one's turn is next. */
  const ready = { heard: new Set<Lane>(), silent: new Set<Lane>() };
  let running = 0;
  let waiting = 0;
  let silentRunning = 0;
  let onIdle: (() => void) | null = null;
  let isStopped = false;

  function laneOf(host: string): Lane {
    let lane = lanes.get(host);
    if (lane === undefined) {
      lane = { host, waiting: new Set(), running: new Set(), unheard: 0 };
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
    const places = isSilent(lane) ? silentPlacesMax : hostPlacesMax;
    if (lane.waiting.size === 0 || lane.running.size >= places) return;
    ready[isSilent(lane) ? 'silent' : 'heard'].add(lane);
  }

  /** Whose turn it is. */
  function next(): Lane | undefined {
    if (running >= placesMax) return undefined;
    const [silent] = silentRunning < silentTotalMax ? ready.silent : [];
    const [heard] = ready.heard;
    const lane = silent ?? heard;
    if (lane !== undefined) ready[lane === silent ? 'silent' : 'heard'].delete(lane);
    return lane;
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
    const asSilent = isSilent(lane);
    lane.waiting.delete(id);
    lane.running.add(id);
    waiting--;
    running++;
    if (asSilent) silentRunning++;
    void deliver(id).then((heard) => {
      lane.running.delete(id);
      running--;
      if (asSilent) silentRunning--;
      if (heard !== null) hear(lane, heard);
      // A silent host is remembered, so that it does not begin anew with all places.
      if (isQuiet(lane) && !isSilent(lane)) lanes.delete(lane.host);
      queueUp(lane);
      beginAll();
      if (running === 0) onIdle?.();
    });
  }

  function hear(lane: Lane, heard: boolean): void {
    lane.unheard = heard ? 0 : lane.unheard + 1;
    ready.heard.delete(lane);
    ready.silent.delete(lane);
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
      ready.heard.clear();
      ready.silent.clear();
      for (const lane of lanes.values()) lane.waiting.clear();
      waiting = 0;
      if (running === 0) return Promise.resolve();
      return new Promise((resolve) => {
        onIdle = resolve;
      });
    },
  };
}

function isSilent(lane: Lane): boolean {
  return lane.unheard >= silentAfter;
}

function isQuiet(lane: Lane): boolean {
  return lane.waiting.size === 0 && lane.running.size === 0;
}
