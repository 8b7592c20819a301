/**
 * Lanes limit how many deliveries run at the same time. Each host has its own lane with a few slots,
 * fewer while the host answers slowly, so that a slow receiver delays only itself. Half of all slots are
 * reserved for hosts whose last answers were quick, so that other hosts, however many, cannot hold all
 * of them. A delivery without a slot waits in its lane. When the lane is full as well, the delivery is
 * refused, and the sweep finds it again. Lanes take turns, and in a lane organizations. Some slots are kept for
 * organizations of which no delivery runs, as for jobs (`core/jobs/turns.ts`). The state of lanes is lost at a restart.
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
/** Slots beyond all others for organizations of which no delivery runs, and how many of them one host has. */
const keptMax = 32;
const keptOfHost = 4;
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
  /** By organization, those whose turn is next first; in order of arrival. */
  readonly waiting: Map<string, Set<string>>;
  waitingCount: number;
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
  /** Running deliveries, by the speed of their host when they started, or in kept slots. */
  readonly #running: Record<HostSpeed | 'kept', number> = { slow: 0, new: 0, quick: 0, kept: 0 };
  /** By organization. */
  readonly #runningOf = new Map<string, number>();
  #waiting = 0;
  #isStopped = false;
  #onIdle: (() => void) | null = null;

  /** `deliver` carries out one delivery, and never rejects. */
  constructor(deliver: (id: string) => Promise<WasQuick>) {
    this.#deliver = deliver;
  }

  /** Adds a delivery of an organization; ignores one that is waiting or running. False when there is no room. */
  add(host: string, id: string, organizationId: string): boolean {
    if (this.#isStopped) return false;
    const lane = this.#laneOf(host);
    if (lane.running.has(id) || lane.waiting.get(organizationId)?.has(id)) return true;
    if (this.#isKeptSlotFor(lane, organizationId)) {
      this.#start(lane, id, organizationId, 'kept');
      return true;
    }
    if (this.#waiting >= waitingMax || lane.waitingCount >= laneWaitingMax) return false;
    const own = lane.waiting.get(organizationId);
    if (own === undefined) lane.waiting.set(organizationId, new Set([id]));
    else own.add(id);
    lane.waitingCount++;
    this.#waiting++;
    this.#enqueue(lane);
    this.#startAll();
    return true;
  }

  /** Hosts whose lanes are at least half full. */
  fullHosts(): string[] {
    const lanes = [...this.#lanes.values()];
    const filled = lanes.filter(({ waitingCount }) => waitingCount >= laneWaitingMax / 2);
    return filled.map(({ host }) => host);
  }

  /** Starts no more and drops the waiting deliveries; resolves when the running ones have ended. */
  stop(): Promise<void> {
    this.#isStopped = true;
    for (const speed of speeds) this.#ready[speed].clear();
    for (const lane of this.#lanes.values()) {
      lane.waiting.clear();
      lane.waitingCount = 0;
    }
    this.#waiting = 0;
    if (this.#isIdle()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #laneOf(host: string): Lane {
    let lane = this.#lanes.get(host);
    if (lane === undefined) {
      const streaks = { slowStreak: 0, quickStreak: 0 };
      lane = { host, waiting: new Map(), waitingCount: 0, running: new Set(), ...streaks };
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
    if (lane.waitingCount === 0 || lane.running.size >= slotsOf(lane)) return;
    this.#ready[speedOf(lane)].add(lane);
  }

  /** Whether a delivery starts in a kept slot: it is the only one of its organization, and has no other slot. */
  #isKeptSlotFor(lane: Lane, organizationId: string): boolean {
    if (this.#runningOf.has(organizationId) || this.#running.kept >= keptMax) return false;
    const slots = slotsOf(lane);
    const hasOther = lane.running.size < slots && this.#isSlotFree(speedOf(lane));
    return !hasOther && lane.running.size < slots + keptOfHost;
  }

  #startAll(): void {
    for (let lane = this.#nextLane(); lane !== undefined; lane = this.#nextLane()) {
      this.#startNext(lane);
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

  #isIdle(): boolean {
    return this.#total() + this.#running.kept === 0;
  }

  /** Starts the next delivery of the organization whose turn it is. */
  #startNext(lane: Lane): void {
    for (const [organizationId, ids] of lane.waiting) {
      const [id] = ids;
      lane.waiting.delete(organizationId);
      if (id === undefined) continue;
      ids.delete(id);
      if (ids.size > 0) lane.waiting.set(organizationId, ids);
      lane.waitingCount--;
      this.#waiting--;
      this.#start(lane, id, organizationId, speedOf(lane));
      return;
    }
  }

  #start(lane: Lane, id: string, organizationId: string, startedAs: HostSpeed | 'kept'): void {
    lane.running.add(id);
    this.#running[startedAs]++;
    this.#runningOf.set(organizationId, (this.#runningOf.get(organizationId) ?? 0) + 1);
    void this.#deliver(id).then((wasQuick) => {
      this.#running[startedAs]--;
      const left = (this.#runningOf.get(organizationId) ?? 1) - 1;
      if (left === 0) this.#runningOf.delete(organizationId);
      else this.#runningOf.set(organizationId, left);
      this.#end(lane, id, wasQuick);
    });
  }

  #end(lane: Lane, id: string, wasQuick: WasQuick): void {
    lane.running.delete(id);
    if (wasQuick !== null) this.#recordAnswer(lane, wasQuick);
    if (isIdle(lane) && lane.slowStreak === 0 && lane.quickStreak === 0) {
      this.#lanes.delete(lane.host);
    }
    this.#enqueue(lane);
    this.#startAll();
    if (this.#isIdle()) this.#onIdle?.();
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

function slotsOf(lane: Lane): number {
  return speedOf(lane) === 'slow' ? slowSlotsMax : hostSlotsMax;
}

function isIdle(lane: Lane): boolean {
  return lane.waitingCount === 0 && lane.running.size === 0;
}
