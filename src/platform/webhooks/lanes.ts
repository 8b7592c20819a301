/**
 * Lanes limit how many deliveries run at the same time. Each host has its own lane with a few slots,
 * fewer while the host answers slowly, so that a slow receiver delays only itself. Half of all slots are
 * reserved for hosts whose last answers were quick, so that other hosts, however many, cannot hold all
 * of them. A delivery without a slot waits in its lane. When the lane is full as well, the delivery is
 * refused, and the sweep finds it again. Organizations take turns, in a lane and over lanes. Some slots are kept for
 * organizations of which no delivery runs, as for jobs (`core/jobs/turns.ts`). The state of lanes is lost at a restart.
 */
import { Rounds } from './rounds.ts';

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
  readonly waiting: Rounds<Organization, string>;
  readonly running: Set<string>;
  /** How many of the running ones have a kept slot. */
  kept: number;
  /** How many of the last deliveries in a row were not answered quickly, and how many were. */
  slowStreak: number;
  quickStreak: number;
}

interface Organization {
  readonly id: string;
  running: number;
  /** The lanes in which its deliveries wait, in the order of their turns. */
  readonly lanes: Set<Lane>;
}

export class Lanes {
  readonly #deliver: (id: string) => Promise<WasQuick>;
  /** By host. */
  readonly #lanes = new Map<string, Lane>();
  /** Those with deliveries, by id. */
  readonly #organizations = new Map<string, Organization>();
  /** Lanes that can start a delivery, each at the organization whose turn it is in the lane. */
  readonly #ready: Readonly<Record<HostSpeed, Rounds<Organization, Lane>>> = {
    slow: new Rounds(),
    new: new Rounds(),
    quick: new Rounds(),
  };
  /** Running deliveries, by the speed of their host when they started, or in kept slots. */
  readonly #running: Record<HostSpeed | 'kept', number> = { slow: 0, new: 0, quick: 0, kept: 0 };
  /** For kept slots: organizations that wait and run nothing, and lanes with a kept slot that is free again. */
  readonly #candidates = new Set<Organization | Lane>();
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
    const known = this.#organizations.get(organizationId);
    const organization = known ?? { id: organizationId, running: 0, lanes: new Set() };
    if (lane.running.has(id) || lane.waiting.has(organization, id)) return true;
    const isFull = this.#waiting >= waitingMax || lane.waiting.size >= laneWaitingMax;
    if (isFull && !this.#isKeptSlotFor(lane, organization)) return false;
    this.#organizations.set(organizationId, organization);
    lane.waiting.add(organization, id);
    organization.lanes.add(lane);
    this.#waiting++;
    if (organization.running === 0) this.#candidates.add(organization);
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
    for (const { lanes } of this.#organizations.values()) lanes.clear();
    this.#candidates.clear();
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
      lane = { host, waiting: new Rounds(), running: new Set(), kept: 0, ...streaks };
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
    const [next] = lane.waiting.owners();
    if (next === undefined || lane.running.size >= slotsOf(lane)) return;
    this.#ready[speedOf(lane)].add(next, lane);
  }

  #dequeue(lane: Lane): void {
    const [next] = lane.waiting.owners();
    if (next === undefined) return;
    for (const speed of speeds) this.#ready[speed].delete(next, lane);
  }

  #startAll(): void {
    while (this.#startNext());
    this.#startInKeptSlots();
  }

  /** Starts a delivery of the organization whose turn it is, in the lane whose turn it is; false when none can start. */
  #startNext(): boolean {
    for (const speed of speeds) {
      const [organization] = this.#isSlotFree(speed) ? this.#ready[speed].owners() : [];
      if (organization === undefined) continue;
      const lane = this.#ready[speed].take(organization);
      if (lane !== undefined) this.#start(lane, organization, speed);
      return true;
    }
    return false;
  }

  /** Each organization is tried once, and again when one of its lanes gets a kept slot back: else each end would try all of them. */
  #startInKeptSlots(): void {
    for (const candidate of this.#candidates) {
      if (this.#running.kept >= keptMax) return;
      this.#candidates.delete(candidate);
      if ('host' in candidate) this.#startKeptIn(candidate);
      else {
        const lane = candidate.lanes.values().find(({ kept }) => kept < keptOfHost);
        if (lane !== undefined) this.#start(lane, candidate, 'kept');
      }
    }
  }

  /** Starts a delivery of an organization that runs nothing; the lane has its next turn after other candidates. */
  #startKeptIn(lane: Lane): void {
    if (lane.kept >= keptOfHost) return;
    const organization = lane.waiting.owners().find(({ running }) => running === 0);
    if (organization === undefined) return;
    this.#start(lane, organization, 'kept');
    if (lane.kept < keptOfHost) this.#candidates.add(lane);
  }

  /** Whether a delivery may start in a kept slot. */
  #isKeptSlotFor(lane: Lane, { running }: Organization): boolean {
    return running === 0 && this.#running.kept < keptMax && lane.kept < keptOfHost;
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

  /** Starts the next delivery of an organization in a lane. */
  #start(lane: Lane, organization: Organization, startedAs: HostSpeed | 'kept'): void {
    const [next] = lane.waiting.owners();
    if (next === organization) this.#dequeue(lane);
    const id = lane.waiting.take(organization);
    if (id === undefined) return;
    organization.lanes.delete(lane);
    if (lane.waiting.hasEntriesOf(organization)) organization.lanes.add(lane);
    organization.running++;
    this.#candidates.delete(organization);
    this.#waiting--;
    lane.running.add(id);
    if (startedAs === 'kept') lane.kept++;
    this.#running[startedAs]++;
    this.#enqueue(lane);
    void this.#deliver(id).then((wasQuick) => {
      this.#running[startedAs]--;
      if (startedAs === 'kept') this.#freeKeptSlot(lane);
      this.#release(organization);
      this.#end(lane, id, wasQuick);
    });
  }

  #freeKeptSlot(lane: Lane): void {
    lane.kept--;
    if (lane.waiting.size > 0) this.#candidates.add(lane);
  }

  #release(organization: Organization): void {
    organization.running--;
    if (organization.running > 0) return;
    if (organization.lanes.size > 0) this.#candidates.add(organization);
    else this.#organizations.delete(organization.id);
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
    this.#dequeue(lane);
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
  return lane.waiting.size === 0 && lane.running.size === 0;
}
