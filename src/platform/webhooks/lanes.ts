/**
 * Lanes limit how many deliveries run at the same time. Each host has its own lane with a few slots,
 * fewer while the host answers slowly, so that a slow receiver delays only itself. Half of all slots are
 * reserved for hosts whose last answers were quick, so that other hosts, however many, cannot hold all
 * of them. A delivery without a slot waits in its lane. When the lane is full as well, the delivery is
 * refused, and the sweep finds it again. Lanes take turns. Their state is lost at a restart.
 */

/** Slots of one host. */
export const hostSlotsMax = 20;
/** Slower answers count as slow. */
export const quickMs = 2_000;
/** Slots of a slow host. */
const slowSlotsMax = 2;
/** A host is slow after this many deliveries in a row without a quick answer. */
const slowAfter = 3;
/**
 * A host is quick after this many quick answers in a row. As many as it has slots, so that a host that
 * answers quickly only now and then stays slow.
 */
const quickAfter = hostSlotsMax;
/** Slots of all hosts together. */
const slotsMax = 500;
/** Slots for hosts that are not quick, and of those the slots for slow hosts; the rest is for new ones. */
const notQuickMax = 250;
const slowMax = 125;
/** Deliveries that wait for a slot, in one lane and in all. */
const laneWaitingMax = 1_000;
const waitingMax = 20_000;
/** Lanes in memory. Above it, the oldest lane without deliveries is dropped. */
const rememberedMax = 10_000;

/** Whether the host answered a delivery quickly, with any status; null when nothing was sent. */
export type WasQuick = boolean | null;

/** How fast a host answers, in the order in which lanes get a free slot. */
const speeds = ['slow', 'new', 'quick'] as const;
type HostSpeed = (typeof speeds)[number];

interface Lane {
  readonly host: string;
  /** In order of arrival. */
  readonly waiting: Set<string>;
  readonly running: Set<string>;
  /** How many of the last deliveries in a row were not answered quickly, and how many were. */
  slowStreak: number;
  quickStreak: number;
}

export class Lanes {
  readonly #deliver: (id: string) => Promise<WasQuick>;
  /** By host. */
  readonly #lanes = new Map<string, Lane>();
  /** Lanes that can start a delivery, in the order of their turns. */
  readonly #ready: Readonly<Record<HostSpeed, Set<Lane>>> = {
    slow: new Set(),
    new: new Set(),
    quick: new Set(),
  };
  /** Running deliveries, by the speed of their host when they started. */
  readonly #running: Record<HostSpeed, number> = { slow: 0, new: 0, quick: 0 };
  #waiting = 0;
  #isStopped = false;
  #onIdle: (() => void) | null = null;

  /** `deliver` carries out one delivery, and never rejects. */
  constructor(deliver: (id: string) => Promise<WasQuick>) {
    this.#deliver = deliver;
  }

  /** Adds a delivery; ignores one that is waiting or running. False when there is no room. */
  add(host: string, id: string): boolean {
    if (this.#isStopped || this.#waiting >= waitingMax) return false;
    const lane = this.#laneOf(host);
    if (lane.running.has(id) || lane.waiting.has(id)) return true;
    if (lane.waiting.size >= laneWaitingMax) return false;
    lane.waiting.add(id);
    this.#waiting++;
    this.#enqueue(lane);
    this.#startAll();
    return true;
  }

  /** Hosts whose lanes are at least half full. */
  fullHosts(): string[] {
    const lanes = [...this.#lanes.values()];
    const filled = lanes.filter(({ waiting }) => waiting.size >= laneWaitingMax / 2);
    return filled.map(({ host }) => host);
  }

  /** Starts no more and drops the waiting deliveries; resolves when the running ones have ended. */
  stop(): Promise<void> {
    this.#isStopped = true;
    for (const speed of speeds) this.#ready[speed].clear();
    for (const lane of this.#lanes.values()) lane.waiting.clear();
    this.#waiting = 0;
    if (this.#total() === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #laneOf(host: string): Lane {
    let lane = this.#lanes.get(host);
    if (lane === undefined) {
      lane = { host, waiting: new Set(), running: new Set(), slowStreak: 0, quickStreak: 0 };
      this.#lanes.set(host, lane);
      if (this.#lanes.size > rememberedMax) this.#dropIdleLane();
    }
    return lane;
  }

  /** Drops the oldest lane without deliveries. */
  #dropIdleLane(): void {
    for (const lane of this.#lanes.values()) {
      if (!isIdle(lane)) continue;
      this.#lanes.delete(lane.host);
      return;
    }
  }

  /** Queues a lane for its turn when it has a waiting delivery and a free slot. */
  #enqueue(lane: Lane): void {
    const speed = speedOf(lane);
    const slots = speed === 'slow' ? slowSlotsMax : hostSlotsMax;
    if (lane.waiting.size === 0 || lane.running.size >= slots) return;
    this.#ready[speed].add(lane);
  }

  #startAll(): void {
    for (let lane = this.#nextLane(); lane !== undefined; lane = this.#nextLane()) {
      this.#start(lane);
      this.#enqueue(lane);
    }
  }

  /** Removes and returns the lane whose turn it is. */
  #nextLane(): Lane | undefined {
    for (const speed of speeds) {
      const [lane] = this.#isSlotFree(speed) ? this.#ready[speed] : [];
      if (lane === undefined) continue;
      this.#ready[speed].delete(lane);
      return lane;
    }
    return undefined;
  }

  #isSlotFree(speed: HostSpeed): boolean {
    const running = this.#running;
    if (this.#total() >= slotsMax) return false;
    if (speed === 'quick') return true;
    if (speed === 'slow' && running.slow >= slowMax) return false;
    return running.slow + running.new < notQuickMax;
  }

  #total(): number {
    return this.#running.slow + this.#running.new + this.#running.quick;
  }

  #start(lane: Lane): void {
    const [id] = lane.waiting;
    if (id === undefined) return;
    const speed = speedOf(lane);
    lane.waiting.delete(id);
    lane.running.add(id);
    this.#waiting--;
    this.#running[speed]++;
    void this.#deliver(id).then((wasQuick) => this.#end(lane, id, speed, wasQuick));
  }

  #end(lane: Lane, id: string, startedAs: HostSpeed, wasQuick: WasQuick): void {
    lane.running.delete(id);
    this.#running[startedAs]--;
    if (wasQuick !== null) this.#recordAnswer(lane, wasQuick);
    if (isIdle(lane) && lane.slowStreak === 0 && lane.quickStreak === 0) {
      this.#lanes.delete(lane.host);
    }
    this.#enqueue(lane);
    this.#startAll();
    if (this.#total() === 0) this.#onIdle?.();
  }

  #recordAnswer(lane: Lane, wasQuick: boolean): void {
    lane.slowStreak = wasQuick ? 0 : lane.slowStreak + 1;
    lane.quickStreak = wasQuick ? lane.quickStreak + 1 : 0;
    for (const speed of speeds) this.#ready[speed].delete(lane);
  }
}

function speedOf({ slowStreak, quickStreak }: Lane): HostSpeed {
  if (slowStreak >= slowAfter) return 'slow';
  return quickStreak >= quickAfter ? 'quick' : 'new';
}

function isIdle(lane: Lane): boolean {
  return lane.waiting.size === 0 && lane.running.size === 0;
}
